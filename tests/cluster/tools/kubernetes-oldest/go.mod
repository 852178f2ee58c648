module outrigger.dev/tests/cluster/tools/kubernetes-oldest

go 1.24.0

// The oldest Kubernetes that the chart takes. Only for the description of its kinds: nothing of it is built.
require k8s.io/kubernetes v1.30.14
