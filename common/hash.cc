#include "common/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include "common/error.h"

namespace outrigger {
namespace {

struct FreeContext {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

void check_sha256(int result) {
  if (result != 1) throw Error("SHA-256 failed in libcrypto");
}

}  // namespace

Sha256 sha256(std::span<const std::byte> data) {
  Sha256 digest;
  unsigned int size = 0;
  check_sha256(EVP_Digest(data.data(), data.size(), reinterpret_cast<unsigned char*>(digest.data()),
                          &size, EVP_sha256(), nullptr));
  return digest;
}

struct Sha256Stream::Impl {
  std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};
};

Sha256Stream::Sha256Stream() : impl_(std::make_unique<Impl>()) {
  check_sha256(EVP_DigestInit_ex(impl_->context.get(), EVP_sha256(), nullptr));
}

Sha256Stream::~Sha256Stream() = default;

void Sha256Stream::add(std::span<const std::byte> piece) {
  check_sha256(EVP_DigestUpdate(impl_->context.get(), piece.data(), piece.size()));
}

Sha256 Sha256Stream::finish() {
  Sha256 digest;
  unsigned int size = 0;
  check_sha256(EVP_DigestFinal_ex(impl_->context.get(),
                                  reinterpret_cast<unsigned char*>(digest.data()), &size));
  return digest;
}

Sha256 hmac_sha256(std::string_view key, std::span<const std::byte> data) {
  Sha256 digest;
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(data.data()), data.size(),
           reinterpret_cast<unsigned char*>(digest.data()), &size) == nullptr) {
    throw Error("HMAC-SHA-256 failed in libcrypto");
  }
  return digest;
}

bool equal_in_constant_time(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

std::string to_hex(std::span<const std::byte> data) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(data.size() * 2);
  for (const std::byte b : data) {
    text += kDigits[std::to_integer<size_t>(b) >> 4];
    text += kDigits[std::to_integer<size_t>(b) & 15];
  }
  return text;
}

std::string random_bytes(size_t size) {
  std::string bytes(size, '\0');
  if (RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(size)) != 1) {
    throw Error("the system's random generator failed");
  }
  return bytes;
}

}  // namespace outrigger
