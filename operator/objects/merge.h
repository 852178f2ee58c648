#pragma once

#include <string>

#include "operator/plan.h"

/// Reading and filling up partial objects, such as a user's pod template.
namespace outrigger::controller {

/// Sets every field of `defaults` that `target` lacks; objects are merged, lists are not.
void fill(Json& target, const Json& defaults);

/// `object[name]` as an object or a list; made where it is absent or of another kind.
Json& object_at(Json& object, const std::string& name);
Json& list_at(Json& object, const std::string& name);

/// The element of `list` with that name; null where there is none.
const Json* find_named(const Json& list, const std::string& name);

/// Adds an element with a "name" unless there is one of that name.
void add_named(Json& list, Json element);

}  // namespace outrigger::controller
