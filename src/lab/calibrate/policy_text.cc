#include "lab/calibrate/policy_text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "lab/calibrate/quantile.h"
#include "lab/log/log_account.h"
#include "policy/yaml_format.h"

namespace weir::lab {
namespace {

constexpr std::size_t kColumns = 98;

// Lines of comment, none of them too long.
class CommentWriter {
 public:
  CommentWriter(std::string& out, std::string indent) : out_(out), indent_(std::move(indent)) {}

  void Say(std::string_view text) {
    std::string line = indent_ + "#";
    while (!text.empty()) {
      const std::string_view word = text.substr(0, text.find(' '));
      text.remove_prefix(std::min(text.size(), word.size() + 1));
      if (line.size() + 1 + word.size() > kColumns && line.size() > indent_.size() + 1) {
        out_ += line + "\n";
        line = indent_ + "#";
      }
      line += " ";
      line += word;
    }
    out_ += line + "\n";
  }

 private:
  std::string& out_;
  const std::string indent_;
};

// What comes from outside must not end the comment.
std::string OneLine(std::string_view text) {
  std::string line;
  for (const char c : text) line += c >= ' ' && c <= '~' ? c : '?';
  return line;
}

std::string FileNames(const Calibration& calibration) {
  constexpr std::size_t kMost = 5;
  std::string names;
  for (std::size_t i = 0; i < calibration.logs.size() && i < kMost; ++i) {
    const std::string& file = calibration.logs[i].file;
    const std::string base = std::filesystem::path(file).filename().string();
    names += (i == 0 ? "" : ", ") + (file == "-" ? "standard input" : OneLine(base));
  }
  if (calibration.logs.size() > kMost) {
    names += " and " + std::to_string(calibration.logs.size() - kMost) + " more";
  }
  return names;
}

std::string KeyText(const ClientKey& key) {
  const auto part = [](const KeyPart& of) -> std::string {
    const KeyAttribute& attribute = of.first_of.front();
    return attribute.hash ? "{ " + attribute.name + ": { hash: true } }" : attribute.name;
  };
  if (key.spec().size() == 1) return part(key.spec().front());
  std::string text = "[";
  for (const KeyPart& of : key.spec()) text += (text.size() > 1 ? ", " : "") + part(of);
  return text + "]";
}

void WriteHead(const Calibration& calibration, CommentWriter comment) {
  const CalibrationSettings& settings = calibration.settings;
  comment.Say("Learnt by weir calibrate from " + FileNames(calibration) + ": " +
              Counted(calibration.requests, "request") + " of " +
              Counted(calibration.clients, "client") + " (by " + OneLine(calibration.key) + "), " +
              TextOfTime(calibration.first) + " to " + TextOfTime(calibration.last) +
              " UTC. A limit is " + TextOfNumber(settings.margin) + " times what " +
              TextOfNumber(100 * settings.quantile) + " % of the clients stayed within. " +
              (calibration.abuser_count == 0 ? "Nobody was set apart."
                                             : Counted(calibration.abuser_count, "client") +
                                                   " far above all others had no part in it."));
  const LogAccount account = AccountOf(calibration.logs, settings.horizon);
  if (calibration.is_partial()) {
    comment.Say("It was not all of the log: part of it could not be read, or changed meanwhile.");
  }
  if (account.left_out > 0 || calibration.without_key > 0) {
    comment.Say("Left out: " + Counted(account.left_out, "line") + " that could not be used, and " +
                Counted(calibration.without_key, "request") + " without such a key.");
  }
  for (const auto& [attribute, column] : calibration.key_columns) {
    std::string text = "The column ";
    text += OneLine(column) + " of the log is " + attribute;
    text += " here; weir replay needs --column " + attribute + "=";
    text += OneLine(column) + ".";
    comment.Say(text);
  }
  comment.Say("");
  comment.Say(
      "Rules in shadow mode count and decide, and weir_decisions_total tells how often one would "
      "have denied (outcome shadow_denied), but nobody is denied. To enforce a rule, write "
      "enforce_percent: 10 in place of mode: shadow, raise it while all is well, and remove it at "
      "the end; that is mode: enforce, for everybody.");
}

void WriteRuleComment(const Calibration& calibration, const ProposedRule& rule,
                      CommentWriter comment) {
  const std::uint64_t normal = calibration.clients - calibration.abuser_count;
  const std::string part = TextOfNumber(100 * calibration.settings.quantile) + " %";
  const bool all = IsTheLargest(normal, calibration.settings.quantile);
  std::string text = (all ? "No client sent more than " : part + " of the clients sent at most ") +
                     Grouped(rule.peak_at_quantile) + " in any " +
                     std::string(kAllPeriods[rule.period].word);
  if (rule.burst != 0) {
    text += (all ? ", or needed a burst of more than " : ", and as many need a burst of at most ") +
            Grouped(rule.burst_at_quantile) + " at this rate";
  }
  text += ". In the log this would have denied " + Grouped(rule.denials.normal_requests) + " of " +
          Grouped(calibration.requests - calibration.abuser_requests) + " requests, those of " +
          Grouped(rule.denials.normal_clients) + " of " + Grouped(normal) + " clients";
  if (calibration.abuser_count > 0) {
    text += "; of those set apart, " + Grouped(rule.denials.abuser_requests) + " of " +
            Grouped(calibration.abuser_requests) + " requests of " + Grouped(rule.denials.abusers) +
            " of " + Grouped(calibration.abuser_count);
  }
  comment.Say(text + ".");
}

// Every request has an address and a method, unless the log shows that some have none that can be
// used.
bool MayBeAbsent(const Calibration& calibration, const std::string& attribute) {
  return calibration.without_key > 0 || (attribute != "ip" && attribute != "method");
}

void WriteMatch(const Calibration& calibration, const ClientKey& key, std::string& out) {
  std::string present;
  for (const std::string& attribute : key.must_be_present()) {
    if (MayBeAbsent(calibration, attribute)) present += "      " + attribute + ": present\n";
  }
  if (present.empty() && calibration.chosen_values.empty()) return;
  out += "    match:\n" + present;
  if (calibration.chosen_values.empty()) return;
  out += "      " + key.chosen_part() + ":\n";
  for (const std::string& value : calibration.chosen_values) out += "        - \"" + value + "\"\n";
}

}  // namespace

std::string PolicyTextOf(const Calibration& calibration, const ClientKey& key, Comments comments) {
  std::string out;
  if (comments == Comments::kAll) WriteHead(calibration, CommentWriter(out, ""));
  out += "listen: { http: 127.0.0.1:8080 }\n\nrules:\n";
  for (const ProposedRule& rule : calibration.rules) {
    if (comments == Comments::kAll) {
      WriteRuleComment(calibration, rule, CommentWriter(out, "  "));
    }
    out += "  - name: " + rule.name + "\n";
    WriteMatch(calibration, key, out);
    out += "    key: " + KeyText(key) + "\n";
    out += "    limit: " + rule.limit() + "\n";
    if (rule.fixed_window) out += "    algorithm: fixed_window\n";
    out += "    mode: shadow\n";
  }
  const FormattedYaml formatted = FormatYaml(out);
  return formatted.text.value_or(out);
}

std::string TextOfTime(WallTime time) {
  const auto second = std::chrono::floor<std::chrono::seconds>(time);
  const auto day = std::chrono::floor<std::chrono::days>(second);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(second - day);
  std::array<char, 64> text{};
  const int size = std::snprintf(
      text.data(), text.size(), "%04d-%02u-%02u %02d:%02d:%02d", static_cast<int>(date.year()),
      static_cast<unsigned>(date.month()), static_cast<unsigned>(date.day()),
      static_cast<int>(clock.hours().count()), static_cast<int>(clock.minutes().count()),
      static_cast<int>(clock.seconds().count()));
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string Grouped(std::uint64_t number) {
  std::string text = std::to_string(number);
  for (std::size_t place = text.size(); place > 3;) text.insert(place -= 3, ",");
  return text;
}

std::string Counted(std::uint64_t number, const std::string& thing) {
  return Grouped(number) + " " + thing + (number == 1 ? "" : "s");
}

std::string TextOfNumber(double number) {
  std::array<char, 32> text{};
  const int size = std::snprintf(text.data(), text.size(), "%.6g", number);
  return {text.data(), static_cast<std::size_t>(size)};
}

bool CanBeListed(std::string_view value) noexcept {
  constexpr std::size_t kLongest = 80;
  constexpr std::string_view kMeansMore = "*{}\"\\%?#";
  return !value.empty() && value.size() <= kLongest && std::ranges::all_of(value, [&](char c) {
    return c > ' ' && c <= '~' && !kMeansMore.contains(c);
  });
}

}  // namespace weir::lab
