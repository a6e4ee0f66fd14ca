// Numbers in commands as Redis reads and writes them: strictly.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace weir::sim {

// No blanks, no plus sign, no leading zeros.
std::optional<std::int64_t> ReadInteger(std::string_view text);
// A score: "1.5", "inf", "-inf"; never NaN.
std::optional<double> ReadDouble(std::string_view text);
// A bound of scores: a score, or "(" and one that is not included.
struct ScoreBound {
  double score = 0;
  bool is_open = false;
};
std::optional<ScoreBound> ReadScoreBound(std::string_view text);

// Whole numbers plainly, others with 17 digits.
std::string WriteDouble(double number);

// Whether the words are the same but for case.
bool IsWord(std::string_view text, std::string_view word_in_lower_case);

inline constexpr char kNotAnInteger[] = "ERR value is not an integer or out of range";
inline constexpr char kNotAFloat[] = "ERR value is not a valid float";
inline constexpr char kSyntaxError[] = "ERR syntax error";
inline constexpr char kWrongType[] =
    "WRONGTYPE Operation against a key holding the wrong kind of value";

}  // namespace weir::sim
