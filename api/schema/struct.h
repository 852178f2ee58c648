#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "api/schema/member.h"
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

/// An Object that knows how to get at the members of the struct behind it.
class BoundObject : public Object {
 public:
  void read(const TextNode& node, void* owner, const std::string& path, Reader& reader) const;
  void check(const void* owner, const std::string& path, Errors& errors) const;
  Json write(const void* owner) const;

  /// A text that is always the same: apiVersion, kind.
  void constant(std::string name, const std::string& value, std::string doc);

 protected:
  Field& declare(std::string name, std::string doc, std::unique_ptr<Member> member);

 private:
  std::vector<std::unique_ptr<Member>> members_;
};

/// The fields of T. Filled by `describe(Struct<T>&)`, which stands beside the tables of fields;
/// constant afterwards.
template <typename T>
class Struct final : public BoundObject {
 public:
  Struct() { describe(*this); }

  /// A member of the same type in the file.
  template <typename M, typename Owner>
  requires std::derived_from<T, Owner> Rule add(std::string name, M Owner::*member,
                                                std::string doc) {
    // Of the base at once: std::unique_ptr's own templates for hundreds of members would take a
    // compiler longer than all else here.
    std::unique_ptr<Member> access(new DataMember<T, M, Owner>(member));
    const T initial{};
    const auto value = access->write(&initial);
    Field& field = declare(std::move(name), std::move(doc), std::move(access));
    Type<M>::describe(field);
    if (field.kind != Kind::kObject && field.kind != Kind::kJson) field.default_value = value;
    return Rule(field);
  }

  /// One of several, of which exactly one is given in the file; see
  /// Alternative.
  template <typename A, typename Get>
  Rule alternative(std::string name, Get get, std::string doc) {
    std::unique_ptr<Member> access(new Alternative<T, A, Get>(get));
    Field& field = declare(std::move(name), std::move(doc), std::move(access));
    Type<A>::describe(field);
    field.alternative = true;
    return Rule(field);
  }
};

/// The description of T, made once.
template <typename T>
const Struct<T>& struct_of() {
  static const Struct<T> description;
  return description;
}

/// Every other type is one of our structs.
template <typename T>
struct Type {
  static void describe(Field& field) {
    field.kind = Kind::kObject;
    field.object = &struct_of<T>();
  }
  static bool read(const TextNode& node, const Field&, T& value, const std::string& path,
                   Reader& reader) {
    if (!reader.expect(node, TextNode::Kind::kMap, path, "an object")) return false;
    struct_of<T>().read(node, &value, path, reader);
    return true;
  }
  static void check(const T& value, const Field&, const std::string& path, Errors& errors) {
    struct_of<T>().check(&value, path, errors);
  }
  static Json write(const T& value) { return struct_of<T>().write(&value); }
  static bool is_set(const T&) { return true; }
};

}  // namespace outrigger::api::schema
