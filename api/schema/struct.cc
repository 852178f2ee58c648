#include "api/schema/struct.h"

namespace outrigger::api::schema {
namespace {

class Constant final : public Member {
 public:
  explicit Constant(std::string value) : value_(std::move(value)) {}
  void read(const TextNode& node, const Field& field, void*, const std::string& path,
            Reader& reader) const override {
    std::string text;
    Type<std::string>::read(node, field, text, path, reader);
  }
  void check(const void*, const Field&, const std::string&, Errors&) const override {}
  std::optional<Json> write(const void*) const override { return value_; }

 private:
  std::string value_;
};

}  // namespace

void BoundObject::read(const TextNode& node, void* owner, const std::string& path,
                       Reader& reader) const {
  const auto nodes = reader.match(node, *this, path);
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i] == nullptr) continue;
    members_[i]->read(*nodes[i], fields[i], owner, join(path, fields[i].name), reader);
  }
}

void BoundObject::check(const void* owner, const std::string& path, Errors& errors) const {
  for (size_t i = 0; i < fields.size(); ++i) {
    members_[i]->check(owner, fields[i], join(path, fields[i].name), errors);
  }
}

Json BoundObject::write(const void* owner) const {
  Json object = Json::object();
  auto& members = object.get_ref<Json::object_t&>();
  members.reserve(fields.size());  // one that grows copies all that is in it
  for (size_t i = 0; i < fields.size(); ++i) {
    // No name is there twice, and the object would look for each among all before it.
    if (auto value = members_[i]->write(owner))
      members.emplace_back(fields[i].name, std::move(*value));
  }
  return object;
}

void BoundObject::constant(std::string name, const std::string& value, std::string doc) {
  Field& field = declare(std::move(name), std::move(doc), std::make_unique<Constant>(value));
  field.kind = Kind::kText;
  field.required = true;
  field.values = {value};
}

Field& BoundObject::declare(std::string name, std::string doc, std::unique_ptr<Member> member) {
  Field& field = fields.emplace_back();
  field.name = std::move(name);
  field.doc = std::move(doc);
  members_.push_back(std::move(member));
  return field;
}

Rule& Rule::required() {
  field_.required = true;
  field_.default_value.reset();
  return *this;
}

Rule& Rule::between(double least, double most) {
  field_.minimum = least;
  field_.maximum = most;
  return *this;
}

Rule& Rule::at_least(double least) {
  field_.minimum = least;
  return *this;
}

Rule& Rule::more_than(double bound) {
  field_.minimum = bound;
  field_.above_minimum = true;
  return *this;
}

Rule& Rule::less_than(double bound) {
  field_.maximum = bound;
  field_.below_maximum = true;
  return *this;
}

Rule& Rule::longest(size_t bytes) {
  field_.longest_text = bytes;
  return *this;
}

Rule& Rule::may_be_empty() {
  field_.least_text = 0;
  return *this;
}

Rule& Rule::form(const TextRule& rule) {
  field_.text_rule = &rule;
  return *this;
}

Rule& Rule::one_of(std::vector<std::string> values) {
  field_.values = std::move(values);
  return *this;
}

Rule& Rule::most_items(size_t count) {
  field_.most_items = count;
  return *this;
}

Rule& Rule::absent(std::string meaning) {
  field_.absent = std::move(meaning);
  return *this;
}

Rule& Rule::change(Change change) {
  field_.change = change;
  return *this;
}

}  // namespace outrigger::api::schema
