// A folder of its own for a test, with a policy in it.
#pragma once

#include <stdlib.h>  // NOLINT(modernize-deprecated-headers): mkdtemp is not in <cstdlib>

#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

namespace weir {

class PolicyFolder {
 public:
  PolicyFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
  }
  // With files of these names and texts; those without a text are left out.
  explicit PolicyFolder(std::initializer_list<std::pair<std::string_view, std::string_view>> files)
      : PolicyFolder() {
    for (const auto& [name, text] : files) {
      if (!text.empty()) Write(name, text);
    }
  }
  PolicyFolder(const PolicyFolder&) = delete;
  PolicyFolder& operator=(const PolicyFolder&) = delete;
  ~PolicyFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string File(std::string_view name) const { return (path_ / name).string(); }
  void Write(std::string_view name, std::string_view text) const {
    std::ofstream(File(name), std::ios::binary) << text;
  }
  // Written beside it and renamed over it, as careful programs do.
  void Replace(std::string_view name, std::string_view text) const {
    Write(std::string(name) + ".new", text);
    std::filesystem::rename(File(std::string(name) + ".new"), File(name));
  }
  void Remove(std::string_view name) const { std::filesystem::remove(path_ / name); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline std::string RuleNamed(std::string_view name, std::string_view limit = "10/min") {
  return "rules:\n  - { name: " + std::string(name) + ", key: user, limit: " + std::string(limit) +
         " }\n";
}

}  // namespace weir
