#include "api/schema/struct.h"

namespace outrigger::api::schema {

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
