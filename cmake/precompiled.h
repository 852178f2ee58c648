#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

/// Nothing calls this. What many sources make of templates is made once here, where headers are
/// precompiled, instead of in each of them.
namespace outrigger::precompiled {

template <typename Json>
Json use(const Json& json, const std::string& text) {
  Json made = {{"a", 1}, {"b", {1.0, true, nullptr}}, {"c", text}, {"d", {{"e", "f"}}}};
  made["array"] = Json::array();
  made["object"] = Json::object();
  made["text"] = text;
  made["letters"] = "letters";
  made["bool"] = true;
  made["int"] = 1;
  made["double"] = 1.0;
  made["int64"] = int64_t{1};
  made["uint64"] = uint64_t{1};
  made["texts"] = std::vector<std::string>{text};
  made[text] = json.value("text", text) + json.value("text", "") +
               json.at("text").template get<std::string>();
  made["sum"] = json.value("int", 1) + json.value("double", 1.0) +
                json.at("double").template get<double>() + json.at("int").template get<int>() +
                static_cast<double>(json.at("int").template get<int64_t>()) +
                static_cast<double>(json.at("int").template get<uint64_t>());
  made["or"] = json.value("bool", true) || json.at("bool").template get<bool>();
  made.push_back(json);
  made.push_back({{"a", text}});
  made.update(json);
  made.erase("a");
  for (const auto& [key, value] : json.items()) made[key] = value;
  for (const Json& value : json) made.push_back(value);
  const auto found = json.find(text);
  if (found != json.end() && found->is_object() && json.contains("a") && json != made)
    return *found;
  std::ostringstream out;
  out << made << made.dump(2);
  return Json::parse(out.str());
}

inline bool use_both(const nlohmann::json& json, const nlohmann::ordered_json& ordered) {
  const std::optional<nlohmann::json> some = use(json, "text");
  return some == std::optional<nlohmann::json>(ordered) &&
         use(ordered, "text") == nlohmann::ordered_json(json);
}

#ifdef GTEST_INCLUDE_GTEST_GTEST_H_
inline void compare(const nlohmann::json& json, const nlohmann::ordered_json& ordered,
                    const std::string& text) {
  EXPECT_EQ(json, json);
  EXPECT_EQ(json, 1);
  EXPECT_EQ(json, text);
  EXPECT_EQ(ordered, ordered);
  EXPECT_EQ(text, text);
  EXPECT_EQ(text, "");
  EXPECT_EQ(text.size(), text.size());
  EXPECT_EQ(text.size(), 1);
  EXPECT_THAT(text, testing::HasSubstr("a"));
  EXPECT_THAT(std::vector<std::string>{text}, testing::ElementsAre("a", "b"));
}
#endif

}  // namespace outrigger::precompiled
