#include "api/parse.h"

#include <algorithm>
#include <functional>
#include <system_error>
#include <tuple>
#include <utility>

#include "api/defaults.h"
#include "api/references.h"
#include "api/schema/fields.h"
#include "api/schema/json_tree.h"
#include "api/validate.h"
#include "common/error.h"
#include "common/file.h"

namespace outrigger::api {
namespace {

constexpr size_t kMostBytesRead = size_t{16}
                                  << 20;  // the reader then says that more than 1 MiB is too long

// Another kind of object, or another version: what else is wrong with it says nothing.
void keep_wrong_kind(std::vector<FieldError>& errors) {
  const auto names_kind = [](const FieldError& error) {
    return (error.path == "kind" || error.path == "apiVersion") && error.message != "missing";
  };
  if (std::none_of(errors.begin(), errors.end(), names_kind)) return;
  errors.erase(std::remove_if(errors.begin(), errors.end(), std::not_fn(names_kind)), errors.end());
}

void read_root(const schema::TextNode& root, UnknownFields unknown, ParseResult& result) {
  schema::Reader reader(unknown == UnknownFields::kPassOver);
  reader.place("", root.place);
  if (reader.expect(root, schema::TextNode::Kind::kMap, "", "a TrainingJob")) {
    schema::struct_of<TrainingJob>().read(root, &result.job, "", reader);
  }
  result.errors = reader.take_errors();
  result.places = reader.take_places();
  result.unknown = reader.take_unknown();
  keep_wrong_kind(result.errors);
}

// A name that was mistyped does not mend itself, as what reading fails of may.
void check_is_file(const std::filesystem::path& path) {
  std::error_code ignored;
  const auto type = std::filesystem::status(path, ignored).type();
  if (type == std::filesystem::file_type::not_found)
    throw InvalidInput(path.string() + ": there is no such file");
  if (type == std::filesystem::file_type::directory)
    throw InvalidInput(path.string() + " is a folder; the file of a TrainingJob is needed");
}

}  // namespace

FieldError located(FieldError error, const std::map<std::string, std::pair<int, int>>& places) {
  std::string path = error.path;
  auto place = places.find(path);
  while (place == places.end() && !path.empty()) {
    const size_t end = path.find_last_of(".[");
    path.resize(end == path.npos ? 0 : end);
    place = places.find(path);
  }
  if (place != places.end()) std::tie(error.line, error.column) = place->second;
  return error;
}

ParseResult parse_training_job(std::string_view text) {
  ParseResult result;
  const schema::TextNode root = schema::read_tree(text, result.errors);
  if (result.errors.empty()) read_root(root, UnknownFields::kRefuse, result);
  return result;
}

ParseResult parse_training_job_object(const nlohmann::json& object, UnknownFields unknown) {
  ParseResult result;
  read_root(schema::tree_of(object), unknown, result);
  return result;
}

ParseResult resolve_training_job(std::string_view text) {
  ParseResult result = parse_training_job(text);
  if (!result.errors.empty()) return result;
  apply_defaults(result.job);
  result.errors = validate(result.job);
  if (result.errors.empty()) result.errors = check_references(result.job);
  for (FieldError& error : result.errors) error = located(std::move(error), result.places);
  return result;
}

ParseResult load_with_places(const std::filesystem::path& path) {
  check_is_file(path);
  ParseResult result = resolve_training_job(read_file(path, kMostBytesRead));
  if (!result.errors.empty()) throw InvalidInput(to_string(result.errors, path.string()));
  return result;
}

TrainingJob load_training_job(const std::filesystem::path& path) {
  return load_with_places(path).job;
}

}  // namespace outrigger::api
