#include "api/schema/fields.h"

namespace outrigger::api::schema {

// Declared before use: struct_of finds them at its instantiation below.
void describe(Struct<ConvolutionLayer>& s) {
  s.add("channels", &ConvolutionLayer::channels, "Channels of the output.")
      .required()
      .between(1, 65536);
  s.add("kernel", &ConvolutionLayer::kernel, "Height and width of the kernel.")
      .required()
      .between(1, 64);
  s.add("stride", &ConvolutionLayer::stride, "Step of the kernel in both directions.")
      .between(1, 64);
  s.add("padding", &ConvolutionLayer::padding, "Zeros added on each side.").between(0, 63);
  s.add("groups", &ConvolutionLayer::groups,
        "Groups of channels that do not mix; as many as there are input channels: depthwise.")
      .between(1, 65536);
  s.add("bias", &ConvolutionLayer::bias, "Adds a trained number to each channel.");
}

void describe(Struct<BatchNormLayer>& s) {
  s.add("epsilon", &BatchNormLayer::epsilon, "Added to the variance.").more_than(0).between(0, 1);
  s.add("momentum", &BatchNormLayer::momentum, "Weight of the new value in the running averages.")
      .between(0, 1);
}

void describe(Struct<ReluLayer>&) {}
void describe(Struct<PReluLayer>&) {}
void describe(Struct<AddLayer>&) {}
void describe(Struct<GlobalAveragePoolLayer>&) {}
void describe(Struct<FlattenLayer>&) {}

template <typename Pool>
void describe_window(Struct<Pool>& s) {
  s.add("kernel", &Pool::kernel, "Height and width of the window.").required().between(1, 1024);
  s.add("stride", &Pool::stride, "Step of the window in both directions.").between(1, 1024);
  s.add("padding", &Pool::padding, "Margin on each side.").between(0, 512);
}
void describe(Struct<MaxPoolLayer>& s) { describe_window(s); }
void describe(Struct<AveragePoolLayer>& s) { describe_window(s); }

void describe(Struct<LinearLayer>& s) {
  s.add("features", &LinearLayer::features, "Features of the output.")
      .required()
      .between(1, 10'000'000);
  s.add("bias", &LinearLayer::bias, "Adds a trained number to each feature.");
}

void describe(Struct<DropoutLayer>& s) {
  s.add("rate", &DropoutLayer::rate, "Share of the values that are zeroed in training.")
      .at_least(0)
      .less_than(1);
}

void describe(Struct<LayerSpec>& s) {
  const auto kind = [](auto& layer) -> auto& { return layer.kind; };
  s.add("name", &LayerSpec::name,
        "Name of the layer; cuts, inputs and weights go by it. \"input\" is the image.")
      .required()
      .longest(128)
      .form(kLayerNameForm);
  s.add("inputs", &LayerSpec::inputs, "Layers that this one reads; they stand before it.")
      .absent("the layer before this one")
      .most_items(16)
      .longest(128)
      .form(kLayerNameForm);
  s.alternative<ConvolutionLayer>("convolution", kind,
                                  "Square convolution, grouped or depthwise too.");
  s.alternative<BatchNormLayer>("batchNorm", kind,
                                "Batch norm with statistics of one micro-batch.");
  s.alternative<ReluLayer>("relu", kind, "max(x, 0).");
  s.alternative<PReluLayer>("prelu", kind, "ReLU with a trained slope per channel below zero.");
  s.alternative<AddLayer>("add", kind, "Sum of the inputs.");
  s.alternative<MaxPoolLayer>("maxPool", kind, "Largest value of each window.");
  s.alternative<AveragePoolLayer>("averagePool", kind, "Mean of each window.");
  s.alternative<GlobalAveragePoolLayer>("globalAveragePool", kind, "Mean over height and width.");
  s.alternative<LinearLayer>("linear", kind, "Fully connected layer.");
  s.alternative<DropoutLayer>("dropout", kind, "Zeroes values at random in training.");
  s.alternative<FlattenLayer>("flatten", kind, "One row of features for each image.");
}

void describe(Struct<ModelSpec>& s) {
  s.add("name", &ModelSpec::name,
        "Network by name: lenet5, resnet18, resnet50, iresnet18, iresnet50, mobilefacenet. Exactly "
        "one of name and "
        "layers is given.")
      .absent("layers are given")
      .longest(64)
      .form(kLayerNameForm);
  s.add("layers", &ModelSpec::layers,
        "Network spelled out, in order; the last layer gives a value for each class, or with "
        "arcFace the embedding.")
      .absent("name is given")
      .most_items(1024);
  s.add("embedding", &ModelSpec::embedding, "Features before the classifier, which embed writes.")
      .absent("the network's own")
      .between(1, 65536);
  s.add("weights", &ModelSpec::weights,
        "A safetensors file to start from, with PyTorch's names of tensors.")
      .absent("random weights from training.seed");
  s.add("replaceHead", &ModelSpec::replace_head,
        "The classifier starts anew, whatever the weights file has. Needs weights.");
  s.add("freezeUntil", &ModelSpec::freeze_until,
        "Layers up to and with this one keep their weights and use their running averages.")
      .absent("every layer is trained")
      .longest(128)
      .form(kLayerNameForm);
}

}  // namespace outrigger::api::schema
