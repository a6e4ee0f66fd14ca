#include "server/tls_files.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>

#include "net/certificates_under_test.h"

namespace weir {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

struct Certificates {
  CertificateUnderTest one{{.file = "one", .names = "DNS:weir.test", .ends_in = 1000}};
  CertificateUnderTest two{{.file = "two", .names = "DNS:weir.test", .ends_in = 2000}};

  static const Certificates& Shared() {
    static const Certificates shared;
    return shared;
  }
};

class TlsFilesTest : public testing::Test {
 protected:
  TlsFilesTest() : folder_(std::filesystem::path(testing::TempDir()) / "tls-files") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    Put(one_.file(), "server.crt");
    Put(one_.key_file(), "server.key");
  }
  ~TlsFilesTest() override { std::filesystem::remove_all(folder_); }

  void Put(const std::string& source, const char* name) {
    std::filesystem::copy_file(source, folder_ / name,
                               std::filesystem::copy_options::overwrite_existing);
  }
  TlsFiles::Looked Look(Duration after = 0s, bool at_once = false) {
    now_ += after;
    return files_.Look(spec_, now_, at_once);
  }

  const CertificateUnderTest& one_ = Certificates::Shared().one;
  const CertificateUnderTest& two_ = Certificates::Shared().two;
  const std::filesystem::path folder_;
  ListenerSpec spec_{
      .address = "127.0.0.1:0", .tls_certificate = "server.crt", .tls_key = "server.key"};
  TlsFiles files_{"http/1.1", folder_.string()};
  SteadyTime now_{};
};

TEST_F(TlsFilesTest, AreLoadedFromTheirFolder) {
  const auto context = files_.Load(spec_);
  ASSERT_TRUE(context) << context.error().message;
  EXPECT_EQ(files_.expires(), (*context)->expires());
  EXPECT_THAT(files_.Paths(spec_), testing::ElementsAre((folder_ / "server.crt").string(),
                                                        (folder_ / "server.key").string()));
}

TEST_F(TlsFilesTest, AreNamedIfTheyCannotBeLoaded) {
  spec_.tls_client_ca = "nowhere.crt";
  const auto context = files_.Load(spec_);
  ASSERT_FALSE(context);
  EXPECT_THAT(context.error().message, HasSubstr((folder_ / "nowhere.crt").string()));
}

TEST_F(TlsFilesTest, AreTakenUpWhenTheyHaveChangedAndOnlyThen) {
  ASSERT_TRUE(files_.Load(spec_));
  EXPECT_EQ(Look().context, nullptr);
  Put(one_.file(), "server.crt");  // The same again.
  EXPECT_EQ(Look().context, nullptr);
  Put(two_.file(), "server.crt");
  Put(two_.key_file(), "server.key");
  const TlsFiles::Looked looked = Look();
  ASSERT_NE(looked.context, nullptr);
  EXPECT_EQ(looked.complaint, "");
  EXPECT_EQ(files_.expires(), looked.context->expires());
  EXPECT_EQ(Look().context, nullptr);
  EXPECT_EQ(files_.applied(), 1U);
  EXPECT_EQ(files_.refused(), 0U);
}

TEST_F(TlsFilesTest, AreWaitedForWhileHalfOfThemIsReplaced) {
  ASSERT_TRUE(files_.Load(spec_));
  Put(two_.file(), "server.crt");
  for (int i = 0; i < 3; ++i) {
    const TlsFiles::Looked looked = Look(300ms);
    EXPECT_EQ(looked.context, nullptr);
    EXPECT_EQ(looked.complaint, "");
  }
  Put(two_.key_file(), "server.key");
  EXPECT_NE(Look(300ms).context, nullptr);
  EXPECT_EQ(files_.refused(), 0U);
  // The next time they have as long again.
  Put(one_.key_file(), "server.key");
  EXPECT_EQ(Look(1h).complaint, "");
}

TEST_F(TlsFilesTest, AreComplainedOfOnceWhenTheyStayWrong) {
  ASSERT_TRUE(files_.Load(spec_));
  Put(two_.file(), "server.crt");
  EXPECT_EQ(Look().complaint, "");
  EXPECT_THAT(Look(2s).complaint, HasSubstr(" is not the key of "));
  EXPECT_EQ(Look(2s).complaint, "");
  EXPECT_EQ(files_.refused(), 1U);
  // Wrong in another way.
  std::filesystem::remove(folder_ / "server.crt");
  EXPECT_EQ(Look().complaint, "");
  EXPECT_THAT(Look(2s).complaint, HasSubstr("server.crt"));
  EXPECT_EQ(Look(2s).complaint, "");
  EXPECT_EQ(files_.refused(), 2U);
  // As they were, and wrong again.
  Put(one_.file(), "server.crt");
  EXPECT_EQ(Look(2s).context, nullptr);
  Put(two_.file(), "server.crt");
  EXPECT_EQ(Look(2s).complaint, "");
  EXPECT_THAT(Look(2s).complaint, HasSubstr(" is not the key of "));
  EXPECT_EQ(files_.applied(), 0U);
}

TEST_F(TlsFilesTest, AreWaitedForWhileAWrongPairIsRepaired) {
  ASSERT_TRUE(files_.Load(spec_));
  Put(two_.key_file(), "server.crt");
  EXPECT_EQ(Look().complaint, "");
  EXPECT_THAT(Look(2s).complaint, HasSubstr("server.crt"));
  // A complaint about the wrong pair leaves the usual time for both files of the right one.
  Put(two_.file(), "server.crt");
  EXPECT_EQ(Look(1h).complaint, "");
  EXPECT_EQ(Look(300ms).complaint, "");
  Put(two_.key_file(), "server.key");
  EXPECT_NE(Look(300ms).context, nullptr);
  EXPECT_EQ(files_.refused(), 1U);
}

TEST_F(TlsFilesTest, AreWaitedForWhenAWrongPairComesBackForAMoment) {
  ASSERT_TRUE(files_.Load(spec_));
  Put(two_.file(), "server.crt");
  EXPECT_EQ(Look().complaint, "");
  EXPECT_NE(Look(2s).complaint, "");
  std::filesystem::remove(folder_ / "server.crt");
  EXPECT_EQ(Look().complaint, "");
  Put(two_.file(), "server.crt");  // No second complaint, and the time begins anew.
  EXPECT_EQ(Look(2s).complaint, "");
  std::filesystem::remove(folder_ / "server.crt");
  EXPECT_EQ(Look().complaint, "");
  EXPECT_EQ(files_.refused(), 1U);
}

TEST_F(TlsFilesTest, AreComplainedOfAtOnceToWhomeverAsks) {
  ASSERT_TRUE(files_.Load(spec_));
  Put(two_.file(), "server.crt");
  EXPECT_THAT(Look(0s, true).complaint, HasSubstr(" is not the key of "));
  EXPECT_THAT(Look(0s, true).complaint, HasSubstr(" is not the key of ")) << "asked again";
  EXPECT_EQ(Look(2s).complaint, "");
}

TEST_F(TlsFilesTest, MayBeOthers) {
  ASSERT_TRUE(files_.Load(spec_));
  spec_.tls_certificate = two_.file();
  spec_.tls_key = two_.key_file();
  EXPECT_NE(Look(0s, true).context, nullptr);
  spec_.tls_client_ca = two_.file();
  EXPECT_NE(Look(0s, true).context, nullptr);
}

TEST(ExpiryWarning, IsGivenInTheLastWeek) {
  const WallTime now{};
  EXPECT_EQ(ExpiryWarning(now + std::chrono::days(8), now), "");
  EXPECT_EQ(ExpiryWarning(now + std::chrono::days(6) + 1h, now),
            "the certificate expires in 6 days");
  EXPECT_EQ(ExpiryWarning(now + 30h, now), "the certificate expires in 30 hours");
  EXPECT_EQ(ExpiryWarning(now, now), "the certificate has expired; clients will not accept it");
}

}  // namespace
}  // namespace weir
