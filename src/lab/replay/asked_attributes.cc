#include "lab/replay/asked_attributes.h"

#include <algorithm>

#include "limit/limit_words.h"
#include "policy/address.h"
#include "policy/request_pairs.h"

namespace weir::lab {
namespace {

constexpr std::string_view kUserAgent = "user-agent";

// x-query-cost: X-Query-Cost
std::string InCapitals(std::string_view name) {
  std::string text(name);
  bool begins = true;
  for (char& c : text) {
    if (begins && c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    begins = c == '-';
  }
  return text;
}

std::string WithUnderscores(std::string_view name) {
  std::string text(name);
  std::ranges::replace(text, '-', '_');
  return text;
}

}  // namespace

AskedAttributes::AskedAttributes(std::span<const PolicySpec* const> policies) {
  for (const PolicySpec* const policy : policies) {
    for (const Match& match : policy->allow) AskMatch(match, "allow");
    for (const Match& match : policy->deny) AskMatch(match, "deny");
    for (const RuleSpec& rule : policy->rules) {
      if (rule.mode == RuleMode::kOff) continue;
      AskMatch(rule.match, rule.name);
      for (const KeyPart& part : rule.key) {
        for (const KeyAttribute& attribute : part.first_of) Ask(attribute.name, rule.name);
        counts_addresses_ =
            counts_addresses_ || (part.first_of.size() == 1 && part.first_of.front().name == "ip");
      }
      if (!rule.tier_limit.empty()) Ask("tier", rule.name);
      if (rule.cost && !rule.cost->attribute.empty()) Ask(rule.cost->attribute, rule.name);
    }
  }
  AddColumns();
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as matches are nested, which is bounded.
void AskedAttributes::AskMatch(const Match& match, const std::string& by) {
  for (const AttributeTest& test : match.attributes) Ask(test.attribute, by);
  for (const std::vector<Match>* const inner : {&match.all, &match.any, &match.none}) {
    for (const Match& each : *inner) AskMatch(each, by);
  }
}

void AskedAttributes::Ask(std::string_view attribute, const std::string& by) {
  Result<Attribute> parsed = ParseAttribute(attribute);
  if (!parsed) return;  // The policy was made, so it is one.
  if (parsed->kind == AttributeKind::kPathSegment) parsed = Attribute{AttributeKind::kPath};
  if (parsed->kind == AttributeKind::kFingerprint) {
    Ask("ip", by);
    Ask("header.user-agent", by);
    return;
  }
  auto found = std::ranges::find(asked_, *parsed, &Asked::attribute);
  if (found == asked_.end()) {
    unseen_.push_back(static_cast<std::uint32_t>(asked_.size()));
    asked_.push_back({.attribute = *std::move(parsed)});
    found = asked_.end() - 1;
  }
  if (std::ranges::find(found->by, by) == found->by.end()) found->by.push_back(by);
}

void AskedAttributes::AddColumns() {
  const auto add = [&](std::vector<Named>& to, const std::string& name,
                       std::vector<std::string> columns) {
    to.push_back({.name = name, .first_column = columns_.size(), .columns = columns.size()});
    std::ranges::move(columns, std::back_inserter(columns_));
  };
  for (const Asked& asked : asked_) {
    const std::string& name = asked.attribute.name;
    const std::string underscored = WithUnderscores(name);
    switch (asked.attribute.kind) {
      case AttributeKind::kHeader:
        user_agent_ = user_agent_ || name == kUserAgent;
        add(headers_, name,
            {"header." + name, name, "http_" + underscored, underscored,
             "request.headers." + InCapitals(name) + ".0"});
        break;
      case AttributeKind::kCookie:
        add(cookies_, name, {"cookie." + name, "cookie_" + underscored});
        break;
      case AttributeKind::kQuery:
        queries_.push_back(name);
        break;
      default:
        break;
    }
  }
  others_ = cookies_.size() + queries_.size() + (user_agent_ ? 1 : 0);
}

std::vector<std::string> AskedAttributes::Columns() const { return columns_; }

std::size_t AskedAttributes::AddNamed(const std::vector<Named>& from, const LogRecord& record,
                                      std::span<NamedValue> room) const {
  std::size_t count = 0;
  for (const Named& named : from) {
    for (std::size_t i = named.first_column; i < named.first_column + named.columns; ++i) {
      if (i >= record.wanted.size() || record.wanted[i].empty()) continue;
      room[count++] = {.name = named.name, .value = record.wanted[i]};
      break;
    }
  }
  return count;
}

void AskedAttributes::MakeRequest(const LogRecord& record, std::span<NamedValue> room, Texts& texts,
                                  Request& request) {
  request.ip = record.ip;
  request.user = record.user;
  request.api_key = record.api_key;
  request.org = record.org;
  request.tier = record.tier;
  request.method = record.method;
  request.path = record.path;
  request.host = record.host;
  if (!room.empty()) {
    std::size_t headers = AddNamed(headers_, record, room);
    if (user_agent_ && !record.user_agent.empty()) {
      // Asked by its usual name, if the log has no column of the header's own.
      const auto known = room.first(headers);
      if (std::ranges::find(known, kUserAgent, &NamedValue::name) == known.end()) {
        room[headers++] = {.name = kUserAgent, .value = record.user_agent};
      }
    }
    request.headers = room.first(headers);
    room = room.subspan(headers);
    const std::size_t cookies = AddNamed(cookies_, record, room);
    request.cookies = room.first(cookies);
    room = room.subspan(cookies);
    std::size_t count = 0;
    if (!queries_.empty()) {
      const std::string_view query = QueryOf(record.path);
      const std::size_t bytes = QueryReader::NeedsBuffer(query) ? query.size() : 0;
      QueryReader reader(query, {texts.Room(bytes), bytes});
      // Of a name that is there twice the first counts.
      while (const std::optional<NamedValue> pair = reader.Next()) {
        const bool asked = std::ranges::find(queries_, pair->name) != queries_.end();
        const auto before = room.first(count);
        const bool again = std::ranges::find(before, pair->name, &NamedValue::name) != before.end();
        if (asked && !again) room[count++] = *pair;
      }
    }
    request.query = room.first(count);
  }
  ++requests_;
  if (counts_addresses_ && !IpAddress::Parse(request.ip)) {
    if (without_address_++ == 0) first_without_address_ = request.ip;
  }
  if (!unseen_.empty()) {
    std::erase_if(unseen_, [&](std::uint32_t place) {
      asked_[place].seen = Has(request, asked_[place].attribute);
      return asked_[place].seen;
    });
  }
}

bool AskedAttributes::Has(const Request& request, const Attribute& attribute) {
  const auto named = [&](std::span<const NamedValue> values) {
    return std::ranges::any_of(values, [&](const NamedValue& value) {
      return EqualIgnoringCase(value.name, attribute.name) && !value.value.empty();
    });
  };
  switch (attribute.kind) {
    case AttributeKind::kIp:
      return IpAddress::Parse(request.ip).has_value();
    case AttributeKind::kUser:
      return !request.user.empty();
    case AttributeKind::kApiKey:
      return !request.api_key.empty();
    case AttributeKind::kOrg:
      return !request.org.empty();
    case AttributeKind::kTier:
      return !request.tier.empty();
    case AttributeKind::kMethod:
      return !request.method.empty();
    case AttributeKind::kPath:
      return !request.path.empty();
    case AttributeKind::kHost:
      return !request.host.empty();
    case AttributeKind::kHeader:
      return named(request.headers);
    case AttributeKind::kCookie:
      return named(request.cookies);
    case AttributeKind::kQuery:
      return named(request.query);
    default:
      return false;  // A log says nothing of descriptors.
  }
}

std::vector<std::string> AskedAttributes::Unanswered() const {
  std::vector<std::string> sentences;
  for (const Asked& asked : asked_) {
    if (asked.seen) continue;
    std::string rules;
    for (const std::string& name : asked.by) {
      if (!rules.empty()) rules += ", ";
      rules += name;
    }
    const std::string name = ToString(asked.attribute);
    std::string sentence = "No request of the log has ";
    sentence += name + ", which ";
    sentence += rules + (asked.by.size() == 1 ? " asks" : " ask");
    sentence += " for: what is said of that is not what would have happened. If a column has it, ";
    sentence += "name it with --column " + name;
    sentences.push_back(sentence + "=COLUMN.");
  }
  if (without_address_ > 0 && without_address_ < requests_) {
    sentences.push_back(
        std::to_string(without_address_) + " of " + std::to_string(requests_) +
        " requests have no address that can be read" +
        (first_without_address_.empty() ? "" : ", the first " + Quoted(first_without_address_)) +
        ": rules by ip count them as one client, or do as unidentified says.");
  }
  return sentences;
}

}  // namespace weir::lab
