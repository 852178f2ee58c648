#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "api/schema/type.h"

namespace outrigger::api::schema {

/// How one field goes into and comes out of the struct that owns it, the struct's type forgotten.
class Member {
 public:
  virtual ~Member() = default;
  virtual void read(const TextNode& node, const Field& field, void* owner, const std::string& path,
                    Reader& reader) const = 0;
  virtual void check(const void* owner, const Field& field, const std::string& path,
                     Errors& errors) const = 0;
  virtual std::optional<Json> write(const void* owner) const = 0;  // nothing: the field is left out
};

/// A data member of T, or of a base of T.
template <typename T, typename M, typename Owner>
class DataMember final : public Member {
 public:
  explicit DataMember(M Owner::*member) : member_(member) {}
  void read(const TextNode& node, const Field& field, void* owner, const std::string& path,
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
  void read(const TextNode& node, const Field& field, void* owner, const std::string& path,
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

}  // namespace outrigger::api::schema
