#pragma once

#include <concepts>
#include <memory>
#include <optional>
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

/// How one field goes into and comes out of the struct that owns it, the struct's type forgotten.
class Member {
 public:
  virtual ~Member() = default;
  virtual void read(const Node& node, const Field& field, void* owner, const std::string& path,
                    Reader& reader) const = 0;
  virtual void check(const void* owner, const Field& field, const std::string& path,
                     Errors& errors) const = 0;
  virtual std::optional<Json> write(const void* owner) const = 0;  // nothing: the field is left out
};

/// An Object that knows how to get at the members of the struct behind it.
class BoundObject : public Object {
 public:
  void read(const Node& node, void* owner, const std::string& path, Reader& reader) const;
  void check(const void* owner, const std::string& path, Errors& errors) const;
  Json write(const void* owner) const;

  /// A text that is always the same: apiVersion, kind.
  void constant(std::string name, const std::string& value, std::string doc);

 protected:
  Field& declare(std::string name, std::string doc, std::unique_ptr<Member> member);

 private:
  std::vector<std::unique_ptr<Member>> members_;
};

/// A data member of T, or of a base of T.
template <typename T, typename M, typename Owner>
class DataMember final : public Member {
 public:
  explicit DataMember(M Owner::*member) : member_(member) {}
  void read(const Node& node, const Field& field, void* owner, const std::string& path,
            Reader& reader) const override {
    Type<M>::read(node, field, static_cast<T*>(owner)->*member_, path, reader);
  }
  void check(const void* owner, const Field& field, const std::string& path,
             Errors& errors) const override {
    Type<M>::check(static_cast<const T*>(owner)->*member_, field, path, errors);
  }
  std::optional<Json> write(const void* owner) const override {
    const M& value = static_cast<const T*>(owner)->*member_;
    if (!Type<M>::is_set(value)) return std::nullopt;
    return Type<M>::write(value);
  }

 private:
  M Owner::*member_;
};

/// One alternative A of the variant that `Get` picks out of a T.
template <typename T, typename A, typename Get>
class Alternative final : public Member {
 public:
  explicit Alternative(Get get) : get_(get) {}
  void read(const Node& node, const Field& field, void* owner, const std::string& path,
            Reader& reader) const override {
    A value{};
    if (Type<A>::read(node, field, value, path, reader)) {
      get_(*static_cast<T*>(owner)) = std::move(value);
    }
  }
  void check(const void* owner, const Field& field, const std::string& path,
             Errors& errors) const override {
    const A* value = std::get_if<A>(&get_(*static_cast<const T*>(owner)));
    if (value != nullptr) Type<A>::check(*value, field, path, errors);
  }
  std::optional<Json> write(const void* owner) const override {
    const A* value = std::get_if<A>(&get_(*static_cast<const T*>(owner)));
    if (value == nullptr) return std::nullopt;
    return Type<A>::write(*value);
  }

 private:
  Get get_;
};

/// The fields of T. Filled once by `describe`, constant afterwards.
template <typename T>
class Struct final : public BoundObject {
 public:
  /// A member of the same type in the file.
  template <typename M, typename Owner>
  requires std::derived_from<T, Owner> Rule add(std::string name, M Owner::*member,
                                                std::string doc) {
    auto access = std::make_unique<DataMember<T, M, Owner>>(member);
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
    Field& field =
        declare(std::move(name), std::move(doc), std::make_unique<Alternative<T, A, Get>>(get));
    Type<A>::describe(field);
    field.alternative = true;
    return Rule(field);
  }
};

/// The description of T, made once by `describe(Struct<T>&)`, which stands
/// beside the tables of fields.
template <typename T>
const Struct<T>& struct_of() {
  static const std::unique_ptr<const Struct<T>> kStruct = [] {
    auto result = std::make_unique<Struct<T>>();
    describe(*result);
    return result;
  }();
  return *kStruct;
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
