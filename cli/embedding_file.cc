#include "cli/embedding_file.h"

#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>

#include "common/error.h"
#include "common/file.h"
#include "common/log.h"
#include "nn/safetensors.h"

namespace outrigger::cli {
namespace {

using nlohmann::json;

/// Paths may be any bytes; what is no UTF-8 is replaced.
std::string dump(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

/// NumPy's format 1.0 (numpy.org, "numpy.lib.format"): the header is filled up so that the values
/// start at a multiple of 64 bytes.
std::string npy_of(const EmbeddingTable& table) {
  std::string header =
      fmt::format("{{'descr': '<f4', 'fortran_order': False, 'shape': ({}, {}), }}",
                  table.paths.size(), table.features);
  constexpr size_t kBefore = 10;
  header.append(63 - (kBefore + header.size()) % 64, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file.append(reinterpret_cast<const char*>(table.values.data()), table.values.size_bytes());
  return file;
}

void write_safetensors(const EmbeddingTable& table, const std::filesystem::path& file) {
  const auto rows = static_cast<int64_t>(table.paths.size());
  nn::SafetensorsWriter writer(file,
                               {{"embeddings", ElementType::kFloat32, {rows, table.features}}},
                               {{"paths", dump(table.paths)}});
  writer.write(std::as_bytes(table.values));
  writer.finish();
}

}  // namespace

void write_json_lines(const EmbeddingTable& table, std::ostream& out) {
  for (size_t i = 0; i < table.paths.size(); ++i) {
    out << "{\"path\": " << dump(table.paths[i]) << ", \"embedding\": [";
    const auto row = table.values.subspan(i * static_cast<size_t>(table.features),
                                          static_cast<size_t>(table.features));
    for (size_t j = 0; j < row.size(); ++j) out << (j > 0 ? ", " : "") << fmt::format("{}", row[j]);
    out << "]}\n";
  }
}

void check_embedding_file(const std::filesystem::path& file) {
  const std::string extension = file.extension().string();
  if (extension != ".safetensors" && extension != ".npy" && extension != ".jsonl")
    throw InvalidInput("embeddings cannot be written to " + file.string() +
                       ": its name must end with .safetensors, .npy or .jsonl");
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error))
    throw IoError("embeddings cannot be written to " + file.string() + ": there is no folder " +
                  folder.string());
}

void write_embeddings(const EmbeddingTable& table, const std::filesystem::path& file) {
  check_embedding_file(file);
  const std::string extension = file.extension().string();
  if (extension == ".safetensors") return write_safetensors(table, file);
  if (extension == ".npy") {
    std::string paths;
    for (const std::string& path : table.paths) paths += path + "\n";
    write_file_atomically(file, npy_of(table));
    write_file_atomically(file.string() + ".paths", paths);
    return;
  }
  std::ostringstream lines;
  write_json_lines(table, lines);
  write_file_atomically(file, lines.str());
}

}  // namespace outrigger::cli
