#include <optional>
#include <variant>
#include <vector>

#include "nn/cpu/operations/operation.h"

namespace outrigger::nn::cpu {
namespace {

// Finds the layers that run as one. A group ends where anybody else reads a layer's output, and at
// the segment's end.
class Grouping {
 public:
  explicit Grouping(const Compilation& c) : c_(c), segment_(c.options().segment) {
    readers_.resize(static_cast<size_t>(c.graph().size()));
    for (int i = 0; i < c.graph().size(); ++i) {
      for (const int input : c.layer(i).inputs) readers_[static_cast<size_t>(input)].push_back(i);
    }
  }

  template <typename T>
  bool is(int layer) const {
    return std::holds_alternative<T>(c_.layer(layer).operation);
  }
  /// The only layer that reads `layer`, if it lies in the segment.
  std::optional<int> only_reader(int layer) const {
    const auto& readers = readers_[static_cast<size_t>(layer)];
    if (readers.size() != 1 || readers[0] >= segment_.end) return std::nullopt;
    return readers[0];
  }
  template <typename T>
  std::optional<int> only_reader_of_kind(int layer) const {
    const auto reader = only_reader(layer);
    return reader && is<T>(*reader) ? reader : std::nullopt;
  }

  Group norm(int layer) const {
    Group group;
    group.main = layer;
    if (const auto add = only_reader_of_kind<Add>(layer)) join_add(group, *add);
    const int last = group.output();
    if (const auto relu = only_reader_of_kind<Relu>(last)) group.activation = *relu;
    // PReLU's backward computes anew what entered it, which with an addition it cannot.
    if (const auto prelu = only_reader_of_kind<Prelu>(last); prelu && group.add < 0)
      group.activation = *prelu;
    return group;
  }
  Group convolution(int layer) const {
    Group group;
    group.main = layer;
    if (const auto relu = only_reader_of_kind<Relu>(layer)) group.activation = *relu;
    return group;
  }

 private:
  // Of two norms that are added the first is the one that adds, so that the other is there.
  void join_add(Group& group, int add) const {
    const auto& inputs = c_.layer(add).inputs;
    if (inputs[0] == inputs[1]) return;
    const int other = inputs[0] == group.main ? inputs[1] : inputs[0];
    const bool other_could =
        is<BatchNorm>(other) && other >= segment_.begin && only_reader(other) == add;
    if (other_could && inputs[0] != group.main) return;
    group.add = add;
    group.add_input = other;
  }

  const Compilation& c_;
  const Segment segment_;
  std::vector<std::vector<int>> readers_;
};

std::unique_ptr<Operation> make_single(const Grouping& grouping, int layer) {
  if (grouping.is<Normalize>(layer)) return make_normalize(layer);
  if (grouping.is<Relu>(layer)) return make_relu(layer);
  if (grouping.is<Prelu>(layer)) return make_prelu(layer);
  if (grouping.is<Add>(layer)) return make_add(layer);
  if (grouping.is<MaxPool>(layer)) return make_max_pool(layer);
  if (grouping.is<AveragePool>(layer)) return make_average_pool(layer);
  if (grouping.is<GlobalAveragePool>(layer)) return make_global_average_pool(layer);
  if (grouping.is<Linear>(layer)) return make_linear(layer);
  if (grouping.is<Dropout>(layer)) return make_dropout(layer);
  if (grouping.is<Flatten>(layer)) return make_flatten(layer);
  return make_arcface(layer);
}

}  // namespace

std::vector<std::unique_ptr<Operation>> make_operations(Compilation& c) {
  const Grouping grouping(c);
  const Segment segment = c.options().segment;
  // A group stands where its last layer stands: by then all that it reads is there.
  std::vector<std::unique_ptr<Operation>> at(static_cast<size_t>(c.graph().size()));
  std::vector<bool> joined(at.size());
  for (int i = segment.begin; i < segment.end; ++i) {
    if (joined[static_cast<size_t>(i)]) continue;
    Group group;
    group.main = i;
    if (grouping.is<BatchNorm>(i)) group = grouping.norm(i);
    if (grouping.is<Convolution>(i)) group = grouping.convolution(i);
    if (group.add >= 0) joined[static_cast<size_t>(group.add)] = true;
    if (group.activation >= 0) joined[static_cast<size_t>(group.activation)] = true;
    at[static_cast<size_t>(group.output())] = grouping.is<BatchNorm>(i) ? make_norm(group)
                                              : grouping.is<Convolution>(i)
                                                  ? make_convolution(group)
                                                  : make_single(grouping, i);
  }
  std::vector<std::unique_ptr<Operation>> operations;
  if (segment.begin > 0) operations.push_back(make_input(segment.begin - 1));
  for (auto& operation : at) {
    if (operation) operations.push_back(std::move(operation));
  }
  operations.push_back(make_output(segment.end - 1));
  return operations;
}

}  // namespace outrigger::nn::cpu
