#include "kube/object/object.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/error.h"
#include "kube/client/base64.h"
#include "kube/object/timestamp.h"

namespace outrigger::kube {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(Resource, PathsFollowGroupAndNamespace) {
  const Resource pods{"", "v1", "pods", "Pod"};
  const Resource leases{"coordination.k8s.io", "v1", "leases", "Lease"};
  const Resource nodes{"", "v1", "nodes", "Node", false};
  EXPECT_EQ(pods.path("team"), "/api/v1/namespaces/team/pods");
  EXPECT_EQ(pods.path(""), "/api/v1/pods");
  EXPECT_EQ(leases.path("team"), "/apis/coordination.k8s.io/v1/namespaces/team/leases");
  EXPECT_EQ(nodes.path("team"), "/api/v1/nodes");
  EXPECT_EQ(leases.api_version(), "coordination.k8s.io/v1");
}

TEST(ObjectKey, TextAndBack) {
  EXPECT_EQ(ObjectKey::parse("team/faces"), (ObjectKey{"team", "faces"}));
  EXPECT_EQ(ObjectKey::parse("node-1"), (ObjectKey{"", "node-1"}));
  EXPECT_EQ((ObjectKey{"team", "faces"}).text(), "team/faces");
}

TEST(Object, WhatIsAbsentReadsAsEmpty) {
  for (const char* text : {"{}", "null", "[]", R"({"metadata": 3})", R"({"metadata": {"name": 7}})",
                           R"({"metadata": {"labels": [], "ownerReferences": {}}})"}) {
    const Json object = Json::parse(text);
    EXPECT_EQ(name_of(object), "") << text;
    EXPECT_EQ(uid_of(object), "") << text;
    EXPECT_EQ(label(object, "a"), std::nullopt) << text;
    EXPECT_EQ(controller_of(object), std::nullopt) << text;
    EXPECT_FALSE(is_deleting(object)) << text;
  }
}

TEST(Object, LabelsAndAnnotationsAreSetAndRead) {
  Json object;
  set_label(object, "app", "faces");
  set_annotation(object, "a/b", "c");
  EXPECT_EQ(label(object, "app"), "faces");
  EXPECT_EQ(label(object, "other"), std::nullopt);
  EXPECT_EQ(annotation(object, "a/b"), "c");
  EXPECT_EQ(selector_of({{"app", "faces"}, {"role", "worker"}}), "app=faces,role=worker");
}

TEST(Object, ItsControllerIsTheOneWithThatUid) {
  Json pod{{"metadata", {{"ownerReferences", {{{"uid", "other"}, {"kind", "ConfigMap"}}}}}}};
  EXPECT_EQ(controller_of(pod), std::nullopt);
  const OwnerReference job{"outrigger.dev/v1alpha1", "TrainingJob", "faces", "uid-1"};
  set_controller(pod, job);
  set_controller(pod, job);
  EXPECT_EQ(pod["metadata"]["ownerReferences"].size(), 2u);
  EXPECT_EQ(controller_of(pod), job);
  EXPECT_TRUE(is_controlled_by(pod, "uid-1"));
  EXPECT_FALSE(is_controlled_by(pod, "uid-2"));
  EXPECT_FALSE(is_controlled_by(Json::object(), ""));
}

TEST(Object, VersionsCompareAsNumbersOfAnyLength) {
  EXPECT_TRUE(is_older_version("99", "100"));
  EXPECT_FALSE(is_older_version("100", "99"));
  EXPECT_FALSE(is_older_version("7", "7"));
  EXPECT_TRUE(is_older_version("99999999999999999998", "99999999999999999999"));
  EXPECT_FALSE(is_older_version("abc", "abd"));
  EXPECT_FALSE(is_older_version("", "1"));
}

TEST(ParseJson, DropsAFieldOfANamedParentOnly) {
  const Json event = parse_json(
      R"({"type": "ADDED", "object": {"metadata": {"managedFields": [{"a": [1, {"b": 2}]}, 3],
          "name": "x"}, "data": {"managedFields": "kept"}, "managedFields": 1}})",
      kManagedFields);
  EXPECT_EQ(event, Json::parse(R"({"type": "ADDED", "object": {"metadata": {"name": "x"},
                                   "data": {"managedFields": "kept"}, "managedFields": 1}})"));
}

// Of a text, by the quick parser and by the library's, which is asked where it is not all ASCII.
void expect_kept(const std::string& text, std::span<const KeptFields> kept, const Json& wanted) {
  EXPECT_EQ(parse_json(R"({"by": "us", "all": )" + text + "}", {}, kept),
            Json({{"by", "us"}, {"all", wanted}}));
  EXPECT_EQ(parse_json(R"({"by": "\u00e9", "all": )" + text + "}", {}, kept),
            Json({{"by", "\u00e9"}, {"all", wanted}}));
}

TEST(ParseJson, KeepsOfAParentNoMoreThanWhatIsNamed) {
  const std::vector<KeptFields> kept{{"spec", {"a", "x\"y"}}, {"", {"name"}}};
  expect_kept(R"({"spec": {"b": [{"a": "}"}], "a": {"b": 1}, "x\"y": 2, "x\"z": 3},
                  "list": [{"name": "n", "a": 1}, [{"b": 1}], 7], "b": null})",
              kept,
              Json::parse(R"({"spec": {"a": {"b": 1}, "x\"y": 2}, "list": [{"name": "n"}, [{}], 7],
                              "b": null})"));
  expect_kept(R"({"spec": 3})", kept, Json::parse(R"({"spec": 3})"));
}

TEST(ParseJson, WhatIsDroppedGoesThoughItIsKept) {
  const std::vector<DroppedField> dropped{{"a", "x"}, {"b", "x"}};
  const std::vector<KeptFields> kept{{"b", {"x", "z"}}};
  EXPECT_EQ(parse_json(R"({"a": {"x": 1, "y": 2}, "b": {"x": 1, "y": 2, "z": 3}})", dropped, kept),
            Json::parse(R"({"a": {"y": 2}, "b": {"z": 3}})"));
}

TEST(ParseJson, ReadsWhatTheLibraryReads) {
  for (const char* text :
       {"null", "[]", "{}", "[[], {}, [1, -2, 3.5, true, false, null]]", R"("\u00e9\n")",
        R"({"a": {"b": {"c": [{"d": "e"}]}}, "f": 18446744073709551615})"}) {
    EXPECT_EQ(parse_json(text, kManagedFields), Json::parse(text)) << text;
  }
}

// The quick parser and the library's must agree, whatever is cut off or changed.
TEST(ParseJson, ReadsEveryBrokenTextAsTheLibraryDoes) {
  const std::string whole =
      R"({"kind": "Pod", "n": [0, -1, 12, 1.5, 1e3, -0, 18446744073709551615, 99999999999999999999, -0.0625, 0.1e2],
          "s": "a\\b\"\u003c\u00e9\n\ud83d\ude00", "t": [true, false, null, [], {}, ""], "o": {"n": {"a": "b"}},
          "a": 1, "a": {"last": "wins"}})";
  const std::vector<std::string> broken{
      "01",         "-",      "1.",      "tru",       "nullx",    "1.5e",
      "-.5",        "01.5",   "[1 2]",   "{\"a\" 1}", "{,}",      "[1,]",
      "{\"a\":1,}", "\"\t\"", "\"\\x\"", "\"\\u12\"", "\"\xff\"", std::string(200, '[')};
  const auto agrees = [](const std::string& text) {
    const Json wanted = Json::parse(text, nullptr, false);
    if (wanted.is_discarded()) {
      EXPECT_THROW(parse_json(text), IoError) << text;
    } else {
      EXPECT_EQ(parse_json(text), wanted) << text;
    }
  };
  for (size_t i = 0; i < whole.size(); ++i) {
    agrees(whole.substr(0, i));
    std::string changed = whole;
    changed[i] = "\"{}[]:,0-e\\x"[i % 12];
    agrees(changed);
  }
  agrees(whole);
  for (const std::string& text : broken) agrees(text);
}

TEST(ParseJson, DropsWhateverADroppedFieldHolds) {
  for (const char* value :
       {R"("a}\"]{")", "[[{}], \"]\"]", "{\"x\": {\"y\": \"}\"}}", "7", "null"}) {
    const std::string text =
        std::string(R"({"metadata": {"managedFields": )") + value + R"(, "name": "x"}})";
    EXPECT_EQ(parse_json(text, kManagedFields), Json::parse(R"({"metadata": {"name": "x"}})"))
        << text;
  }
  EXPECT_THROW(parse_json(R"({"metadata": {"managedFields": [1)", kManagedFields), IoError);
}

TEST(ParseJson, SaysWhereATextIsBroken) {
  EXPECT_THAT(
      [] { parse_json(R"({"a": [1, })"); },
      ThrowsMessage<IoError>(testing::AllOf(HasSubstr("{\"a\": [1, }"), HasSubstr("byte"))));
  EXPECT_THROW(parse_json(""), IoError);
  EXPECT_THROW(parse_json("{} {}"), IoError);
}

TEST(Timestamp, IsWrittenWithAndWithoutMicroseconds) {
  const auto time = parse_time("2024-02-29T23:59:58.000123Z");
  ASSERT_TRUE(time);
  EXPECT_EQ(format_time(*time), "2024-02-29T23:59:58Z");
  EXPECT_EQ(format_micro_time(*time), "2024-02-29T23:59:58.000123Z");
  EXPECT_EQ(format_micro_time(Timestamp{}), "1970-01-01T00:00:00.000000Z");
}

TEST(Timestamp, ReadsDecimalsAndOffsets) {
  EXPECT_EQ(parse_time("2024-05-01T14:00:00.1234567+02:00"),
            parse_time("2024-05-01T12:00:00.123456Z"));
  EXPECT_EQ(parse_time("2024-05-01T12:00:00-00:30"), parse_time("2024-05-01T12:30:00Z"));
}

TEST(Timestamp, RefusesWhatIsNone) {
  for (const char* text : {"", "2024", "2024-05-01", "2024-05-01T12:00:00", "2024-13-01T12:00:00Z",
                           "2023-02-29T12:00:00Z", "2024-05-01T24:00:00Z", "2024-05-01T12:00:00Zx",
                           "2024-05-01T12:00:00.Z", "-024-05-01T12:00:00Z",
                           "0000-01-01T00:00:00+01:00", "2024-05-01T12:00:00+25:00"}) {
    EXPECT_EQ(parse_time(text), std::nullopt) << text;
  }
}

TEST(Base64, MeetsTheExamplesOfItsRfc) {
  const std::vector<std::pair<std::string, std::string>> examples{{"", ""},
                                                                  {"f", "Zg=="},
                                                                  {"fo", "Zm8="},
                                                                  {"foo", "Zm9v"},
                                                                  {"foob", "Zm9vYg=="},
                                                                  {"fooba", "Zm9vYmE="},
                                                                  {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
  EXPECT_EQ(decode_base64("Zm9v\nYmFy\n"), "foobar");
  EXPECT_EQ(decode_base64(encode_base64("\xff\x00\x80")), std::string("\xff"));
  EXPECT_EQ(decode_base64url("_-8"), "\xff\xef");
  EXPECT_EQ(decode_base64url("Zm9vYg"), "foob");
}

TEST(Base64, RefusesWhatIsNone) {
  for (const char* text : {"Zg", "Zg=", "Z", "Zg==Zg==", "Zm9v!", "Z===", "====", "Zm 9v"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

TEST(Text, IsWhatTheLibraryWrites) {
  for (const char* text :
       {"{}", "[]", "null", "true", "[false,0,-7,18446744073709551615,1.5,1e300]",
        R"({"a":{"b":[{},[],""]},"c":"x\n\"y\"\\","d\u0001":"\u00e9","e":[[1],{"f":2}]})"}) {
    const Json value = Json::parse(text);
    EXPECT_EQ(to_text(value), value.dump()) << text;
  }
}

TEST(Text, KeepsTheOrderOfMembersThatHaveOne) {
  const std::string text = R"({"b":{"d":[1,"x\n"],"c":-1},"a":1.5,"\u00e9":null})";
  const OrderedJson value = OrderedJson::parse(text);
  EXPECT_EQ(to_text(value), value.dump());
  EXPECT_TRUE(to_text(value).starts_with(R"({"b":{"d":)"));
}

TEST(Text, ReplacesWhatIsNoUtf8) {
  const Json value = std::string("a\xffz");
  EXPECT_EQ(to_text(value), "\"a\xef\xbf\xbdz\"");
}

}  // namespace
}  // namespace outrigger::kube
