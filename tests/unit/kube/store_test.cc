#include "kube/cache/store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace outrigger::kube {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// Of a pod, the nodes it is shown under.
using Nodes = std::vector<std::string>;
using Pods = Store<Nodes>;

CachedPtr<Nodes> pod(const std::string& ns, const std::string& name, Nodes nodes,
                     const std::string& version = "1") {
  return std::make_shared<const Cached<Nodes>>(
      Cached<Nodes>{{ns, name}, "uid-of-" + name, version, std::move(nodes)});
}

Pods make_store() {
  return Pods({{"node", [](const Cached<Nodes>& object) { return object.value; }}});
}

std::vector<std::string> names(const std::vector<CachedPtr<Nodes>>& pods) {
  std::vector<std::string> found;
  for (const auto& one : pods) found.push_back(one->key.text());
  return found;
}

TEST(Store, FindsByNamespaceAndName) {
  Pods store = make_store();
  store.put(pod("team", "a", {}));
  store.put(pod("other", "a", {}));
  store.put(pod("", "team", {}));
  EXPECT_EQ(store.size(), 3U);
  EXPECT_EQ(store.get({"team", "a"})->key.ns, "team");
  EXPECT_EQ(store.get({"", "team"})->key.name, "team");
  EXPECT_EQ(store.get({"team", "b"}), nullptr);
  EXPECT_EQ(store.get({"a", "team"}), nullptr);
}

TEST(Store, AnIndexShowsWhatIsThereByKey) {
  Pods store = make_store();
  for (const char* name : {"c", "a", "d", "b"}) store.put(pod("team", name, {"one"}));
  store.put(pod("other", "z", {"one", "two"}));
  EXPECT_THAT(names(store.by_index("node", "one")),
              ElementsAre("other/z", "team/a", "team/b", "team/c", "team/d"));
  EXPECT_THAT(names(store.by_index("node", "two")), ElementsAre("other/z"));
  EXPECT_THAT(store.by_index("node", "three"), IsEmpty());
}

TEST(Store, WhatIsReplacedLeavesItsIndexEntries) {
  Pods store = make_store();
  EXPECT_EQ(store.put(pod("team", "a", {"one"}, "1")), nullptr);
  const auto former = store.put(pod("team", "a", {"two"}, "2"));
  ASSERT_TRUE(former);
  EXPECT_EQ(former->resource_version, "1");
  EXPECT_THAT(store.by_index("node", "one"), IsEmpty());
  ASSERT_EQ(store.by_index("node", "two").size(), 1U);
  EXPECT_EQ(store.by_index("node", "two")[0]->resource_version, "2");
  EXPECT_EQ(store.size(), 1U);
}

TEST(Store, WhatIsReplacedStaysWhereTheIndexShowedIt) {
  Pods store = make_store();
  for (const char* name : {"a", "b", "c"}) store.put(pod("team", name, {"one", "two"}, "1"));
  const auto newer = pod("team", "b", {"one", "two"}, "2");
  EXPECT_EQ(store.put(newer)->resource_version, "1");
  EXPECT_EQ(store.put(newer), newer);
  for (const char* node : {"one", "two"}) {
    const auto shown = store.by_index("node", node);
    EXPECT_THAT(names(shown), ElementsAre("team/a", "team/b", "team/c"));
    EXPECT_EQ(shown[1], newer);
  }
  EXPECT_EQ(store.get({"team", "b"}), newer);
  EXPECT_EQ(store.size(), 3U);
}

TEST(Store, WhatIsRemovedIsInNoIndex) {
  Pods store = make_store();
  store.put(pod("team", "a", {"one", "one"}));  // named twice, shown once
  store.put(pod("team", "b", {"one"}));
  EXPECT_EQ(store.by_index("node", "one").size(), 2U);
  EXPECT_EQ(store.remove({"team", "a"})->key.name, "a");
  EXPECT_EQ(store.remove({"team", "a"}), nullptr);
  EXPECT_THAT(names(store.by_index("node", "one")), ElementsAre("team/b"));
  EXPECT_THAT(names(store.list()), ElementsAre("team/b"));
}

}  // namespace
}  // namespace outrigger::kube
