#include "nn/models/builder.h"

namespace outrigger::nn::models {

void build_lenet5(GraphBuilder& builder, const ModelOptions& options) {
  add_symmetric_normalize(builder, options);
  builder.add("conv1", Convolution{.out_channels = 6, .kernel = 5, .bias = true});
  builder.add("relu1", Relu{});
  builder.add("pool1", MaxPool{});
  builder.add("conv2", Convolution{.out_channels = 16, .kernel = 5, .bias = true});
  builder.add("relu2", Relu{});
  builder.add("pool2", MaxPool{});
  builder.add("flatten", Flatten{});
  builder.add("fc1", Linear{120});
  builder.add("relu3", Relu{});
  builder.add("fc2", Linear{84});
  builder.mark_embedding(builder.add("relu4", Relu{}));
  add_head(builder, options, "fc3", options.dropout);
}

}  // namespace outrigger::nn::models
