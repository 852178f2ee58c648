#include "common/hash.h"

#include <gtest/gtest.h>

namespace outrigger {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// FIPS 180-4, examples.
TEST(Hash, Sha256AgreesWithThePublishedExamples) {
  EXPECT_EQ(to_hex(sha256(bytes_of("abc"))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(to_hex(sha256({})), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

TEST(Hash, OfPiecesIsThatOfTheWhole) {
  const std::string text = random_bytes(1000);
  for (const size_t piece : {1, 63, 64, 65, 999, 1000}) {
    Sha256Stream stream;
    for (size_t at = 0; at < text.size(); at += piece)
      stream.add(bytes_of(std::string_view(text).substr(at, piece)));
    EXPECT_EQ(stream.finish(), sha256(bytes_of(text))) << piece;
  }
  EXPECT_EQ(Sha256Stream().finish(), sha256({}));
}

// RFC 4231, test cases 2 and 6 (a key longer than a block).
TEST(Hash, HmacAgreesWithThePublishedExamples) {
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", bytes_of("what do ya want for nothing?"))),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  EXPECT_EQ(to_hex(hmac_sha256(std::string(131, '\xaa'),
                               bytes_of("Test Using Larger Than Block-Size Key - Hash Key First"))),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Hash, ConstantTimeComparisonTellsEqualFromDifferent) {
  EXPECT_TRUE(equal_in_constant_time(bytes_of("token"), bytes_of("token")));
  EXPECT_FALSE(equal_in_constant_time(bytes_of("token"), bytes_of("tokem")));
  EXPECT_FALSE(equal_in_constant_time(bytes_of("token"), bytes_of("token2")));
  EXPECT_TRUE(equal_in_constant_time({}, {}));
}

TEST(Hash, RandomBytesAreAsManyAsAskedForAndNeverTheSame) {
  EXPECT_EQ(random_bytes(32).size(), 32u);
  EXPECT_NE(random_bytes(32), random_bytes(32));
}

}  // namespace
}  // namespace outrigger
