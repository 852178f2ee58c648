#include "api/names.h"
#include "api/schema/fields.h"

namespace outrigger::api::schema {

void describe(Struct<WireSpec>& s) {
  s.add("activations", &WireSpec::activations,
        "Type in which activations travel. Auto: not below training.precision.");
  s.add("gradients", &WireSpec::gradients,
        "Type in which gradients travel. Auto: not below training.precision.");
}

void describe(Struct<SplitSpec>& s) {
  s.add("cut", &SplitSpec::cut,
        "Where the network is cut. Auto: measured and moved while the job runs. Input: workers "
        "send pixels. Else the "
        "last layer that workers run.")
      .longest(128)
      .form(kLayerNameForm);
  s.add("sharePercent", &SplitSpec::share_percent,
        "Part of each batch whose first layers run on workers; the rest runs whole on the server. "
        "Without effect at "
        "cut Input.")
      .absent("measured and moved while the job runs")
      .between(0, 100);
  s.add("minServerPercent", &SplitSpec::min_server_percent,
        "Least part of the network's multiply-adds that stays on the server's device. Cuts that "
        "have "
        "more than half of them before them are only looked at where this is from 1 to 49.")
      .between(0, 100);
  s.add("maxBytesPerSecond", &SplitSpec::max_bytes_per_second,
        "Most bytes a second that a plan which is found may move between a server and its workers, "
        "in each direction. What would move more stays on the server. Needs a plan to find: cut "
        "Auto, or a layer without sharePercent.")
      .absent("no bound")
      .between(1000, 1'000'000'000'000);
  s.add("wire", &SplitSpec::wire, "How tensors travel between server and workers.");
}

void describe(Struct<ServerSpec>& s) {
  s.add("replicas", &ServerSpec::replicas, "Server pods.").between(1, 1024);
  s.add("gpus", &ServerSpec::gpus, "GPUs of each pod; 0: the CPU.").between(0, 64);
  s.add("gpuResourceName", &ServerSpec::gpu_resource_name,
        "Resource that pods ask for, once for each GPU.")
      .longest(316)
      .form(kQualifiedNameForm);
  s.add("engine", &ServerSpec::engine, "External: the server is the user's own training loop.");
  s.add("template", &ServerSpec::pod_template,
        "Partial PodTemplateSpec; the container \"server\" is ours and created if absent.")
      .absent("nothing added")
      .change(Change::kWhileSuspended);
}

void describe(Struct<AutoscalingSpec>& s) {
  s.add("targetStallPercent", &AutoscalingSpec::target_stall_percent,
        "Part of the server's time in which its device may wait.")
      .between(1, 90);
  s.add("scaleUpWindowSeconds", &AutoscalingSpec::up_window,
        "More workers are made once the server could use them for so long; the least of that time "
        "counts.")
      .between(0, 3600);
  s.add("scaleDownWindowSeconds", &AutoscalingSpec::down_window,
        "Workers are ended once the server could do without them for so long; the most of that "
        "time counts.")
      .between(0, 3600);
}

void describe(Struct<WorkersSpec>& s) {
  s.add("replicas", &WorkersSpec::replicas, "Worker pods.").between(0, kMostPods);
  s.add("minReplicas", &WorkersSpec::min_replicas,
        "Fewest workers that autoscaling leaves; replicas may not be less.")
      .between(0, kMostPods);
  s.add("maxReplicas", &WorkersSpec::max_replicas,
        "Most workers that autoscaling makes; replicas may not be more.")
      .absent("no bound, and no autoscaling")
      .between(0, kMostPods);
  s.add("autoscaling", &WorkersSpec::autoscaling,
        "Lets the number of workers follow the stall. Needs maxReplicas.")
      .absent("the number stays as it is set");
  s.add("template", &WorkersSpec::pod_template,
        "Partial PodTemplateSpec; the container \"worker\" is ours and created if absent.")
      .absent("nothing added")
      .change(Change::kWhileSuspended);
}

void describe(Struct<NetworkSpec>& s) {
  s.add("port", &NetworkSpec::port,
        "TCP port on which the server takes joins; ranks of a pod take ports in a row. A cluster "
        "refuses 8080 with NotSupported: a pod shows its status there, and that of further ranks "
        "behind it.")
      .between(1, 65535);
  s.add("link", &NetworkSpec::link, "What carries tensors between server and workers.");
  s.add("interface", &NetworkSpec::interface,
        "Network interface for links. Not built yet: refused with NotSupported.")
      .absent("as the system routes")
      .longest(15)
      .form(kInterfaceForm);
  s.add("encryption", &NetworkSpec::encryption,
        "TLS: links between processes are encrypted. Not built yet: refused with NotSupported.");
}

}  // namespace outrigger::api::schema
