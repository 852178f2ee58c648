#include <gtest/gtest.h>

#include <algorithm>

#include "cluster.h"
#include "corpus.h"

namespace outrigger::api {
namespace {

std::vector<Case> whole_corpus() {
  std::vector<Case> corpus = base_jobs();
  std::vector<Case> fields = field_cases(corpus);
  for (Case& one : rule_cases()) corpus.push_back(std::move(one));
  for (Case& one : fields) corpus.push_back(std::move(one));
  return corpus;
}

TEST(Corpus, HoldsManyGoodAndManyBadJobs) {
  const auto corpus = whole_corpus();
  const auto good = std::count_if(corpus.begin(), corpus.end(), [](auto& one) { return one.good; });
  EXPECT_GT(good, 150);
  EXPECT_GT(static_cast<long>(corpus.size()) - good, 400);
}

TEST(Corpus, OurVerdictIsTheOneThatIsWrittenDown) {
  auto corpus = base_jobs();
  for (Case& one : rule_cases()) corpus.push_back(std::move(one));
  for (const Case& one : corpus)
    EXPECT_EQ(errors_of(one.object).empty(), one.good) << one.what << "\n" << errors_of(one.object);
}

// All jobs go into one call: each gets a name of its own, by which the answers are told apart.
TEST(ApiServer, GivesTheVerdictOfValidate) {
  if (const auto why = Cluster::missing(); !why.empty()) GTEST_SKIP() << why;
  const Cluster cluster;
  std::vector<Case> corpus = whole_corpus();
  std::filesystem::path folder;
  for (size_t i = 0; i < corpus.size(); ++i) {
    Json& name = corpus[i].object["metadata"]["name"];
    if (errors_of(corpus[i].object).find("metadata.name") == std::string::npos)
      name = "case-" + std::to_string(i);
    folder = cluster.write("corpus/" + std::to_string(i) + ".json", corpus[i].object.dump());
    folder = folder.parent_path();
  }
  const CommandResult answer =
      cluster.kubectl("create --dry-run=server --validate=strict -f '" + folder.string() + "'");
  size_t accepted = 0;
  for (const Case& one : corpus) {
    const auto name = one.object["metadata"]["name"].get<std::string>();
    const bool created =
        answer.output.find("trainingjob.outrigger.dev/" + name + " created") != std::string::npos;
    accepted += created ? 1 : 0;
    EXPECT_EQ(created, one.good) << one.what << "\nhere: " << errors_of(one.object);
  }
  RecordProperty("jobs", static_cast<int>(corpus.size()));
  EXPECT_GT(accepted, 150u) << answer.output.substr(0, 4000);
  std::printf("%zu jobs asked, %zu accepted\n", corpus.size(), accepted);
}

}  // namespace
}  // namespace outrigger::api
