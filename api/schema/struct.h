#pragma once

#include <concepts>
#include <functional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/schema/type.h"

namespace outrigger::api::schema {

/// Narrows the field that was just declared; each returns itself, to be chained.
class Rule {
 public:
  explicit Rule(Field& field) : field_(field) {}
  Rule& required();
  Rule& between(double least, double most);
  Rule& at_least(double least);
  Rule& more_than(double bound);
  Rule& less_than(double bound);
  Rule& longest(size_t bytes);
  Rule& may_be_empty();
  Rule& form(const TextRule& rule);
  Rule& one_of(std::vector<std::string> values);
  Rule& most_items(size_t count);
  Rule& absent(std::string meaning);
  Rule& change(Change change);

 private:
  Field& field_;
};

/// An Object that knows the struct behind it. Filled once by `describe`, constant afterwards.
template <typename T>
class Struct final : public Object {
 public:
  /// A member of the same type in the file.
  template <typename M, typename Owner>
  requires std::derived_from<T, Owner> Rule add(std::string name, M Owner::*member,
                                                std::string doc) {
    Field& field = declare<M>(std::move(name), std::move(doc));
    const M initial = T{}.*member;
    const bool constant =
        field.kind != Kind::kObject && field.kind != Kind::kJson && Type<M>::is_set(initial);
    if (constant) field.default_value = Type<M>::write(initial);
    members_.push_back(
        {[member](const Node& node, const Field& f, T& owner, const std::string& path,
                  Reader& reader) { Type<M>::read(node, f, owner.*member, path, reader); },
         [member](const T& owner, const Field& f, const std::string& path, Errors& errors) {
           Type<M>::check(owner.*member, f, path, errors);
         },
         [member](const T& owner, const Field& f, Json& object) {
           if (Type<M>::is_set(owner.*member)) object[f.name] = Type<M>::write(owner.*member);
         }});
    return Rule(field);
  }

  /// One alternative A of the variant that `get` picks out of the owner; exactly one is given in
  /// the file.
  template <typename A, typename Get>
  Rule alternative(std::string name, Get get, std::string doc) {
    Field& field = declare<A>(std::move(name), std::move(doc));
    field.alternative = true;
    members_.push_back(
        {[get](const Node& node, const Field& f, T& owner, const std::string& path,
               Reader& reader) {
           A value{};
           if (Type<A>::read(node, f, value, path, reader)) get(owner) = std::move(value);
         },
         [get](const T& owner, const Field& f, const std::string& path, Errors& errors) {
           if (const A* value = std::get_if<A>(&get(owner)))
             Type<A>::check(*value, f, path, errors);
         },
         [get](const T& owner, const Field& f, Json& object) {
           if (const A* value = std::get_if<A>(&get(owner)))
             object[f.name] = Type<A>::write(*value);
         }});
    return Rule(field);
  }

  /// A text that is always the same: apiVersion, kind.
  void constant(std::string name, std::string value, std::string doc) {
    Field& field = declare<std::string>(std::move(name), std::move(doc));
    field.required = true;
    field.values = {value};
    members_.push_back(
        {[](const Node& node, const Field& f, T&, const std::string& path, Reader& reader) {
           std::string text;
           Type<std::string>::read(node, f, text, path, reader);
         },
         [](const T&, const Field&, const std::string&, Errors&) {},
         [value](const T&, const Field& f, Json& object) { object[f.name] = value; }});
  }

  void read(const Node& node, T& value, const std::string& path, Reader& reader) const {
    const auto nodes = reader.match(node, *this, path);
    for (size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i] != nullptr)
        members_[i].read(*nodes[i], fields[i], value, join(path, fields[i].name), reader);
    }
  }

  void check(const T& value, const std::string& path, Errors& errors) const {
    for (size_t i = 0; i < fields.size(); ++i) {
      members_[i].check(value, fields[i], join(path, fields[i].name), errors);
    }
  }

  Json write(const T& value) const {
    Json object = Json::object();
    for (size_t i = 0; i < fields.size(); ++i) members_[i].write(value, fields[i], object);
    return object;
  }

 private:
  struct Member {
    std::function<void(const Node&, const Field&, T&, const std::string&, Reader&)> read;
    std::function<void(const T&, const Field&, const std::string&, Errors&)> check;
    std::function<void(const T&, const Field&, Json&)> write;
  };

  template <typename M>
  Field& declare(std::string name, std::string doc) {
    Field& field = fields.emplace_back();
    field.name = std::move(name);
    field.doc = std::move(doc);
    Type<M>::describe(field);
    return field;
  }

  std::vector<Member> members_;
};

/// The description of T, made once by `describe(Struct<T>&)`, which stands beside the tables of
/// fields.
template <typename T>
const Struct<T>& struct_of() {
  static const Struct<T> kStruct = [] {
    Struct<T> result;
    describe(result);
    return result;
  }();
  return kStruct;
}

/// Every other type is one of our structs.
template <typename T>
struct Type {
  static void describe(Field& field) {
    field.kind = Kind::kObject;
    field.object = &struct_of<T>();
  }
  static bool read(const Node& node, const Field&, T& value, const std::string& path,
                   Reader& reader) {
    if (!reader.expect(node, Node::Kind::kMap, path, "an object")) return false;
    struct_of<T>().read(node, value, path, reader);
    return true;
  }
  static void check(const T& value, const Field&, const std::string& path, Errors& errors) {
    struct_of<T>().check(value, path, errors);
  }
  static Json write(const T& value) { return struct_of<T>().write(value); }
  static bool is_set(const T&) { return true; }
};

}  // namespace outrigger::api::schema
