#include "frontend/resp/command_list.h"

#include <string>
#include <vector>

#include "frontend/resp/command_table.h"
#include "limit/limit_words.h"

namespace weir::resp {
namespace {

// How much of a call is repeated to those who made it.
constexpr std::size_t kMostRepeated = 128;

std::string LowerCase(std::string_view upper_case) {
  std::string lower;
  for (const char c : upper_case) {
    lower += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return lower;
}

// Null for one that does not exist; all if no names are given.
std::vector<const CommandRow*> RowsOf(std::span<const std::string_view> names) {
  std::vector<const CommandRow*> rows;
  for (const std::string_view name : names) rows.push_back(FindCommand(name));
  if (names.empty()) {
    for (const CommandRow& row : Commands()) rows.push_back(&row);
  }
  return rows;
}

// Name, number of words, flags, first key, last key, step, and four lists that may be empty:
// categories, tips, key specifications, subcommands.
void WriteInfo(const CommandRow& row, ReplyWriter& writer) {
  const auto least = static_cast<std::int64_t>(row.least);
  const auto key = static_cast<std::int64_t>(row.key);
  writer.Array(10);
  writer.Bulk(LowerCase(row.name));
  writer.Integer(row.least == row.most ? least : -least);
  writer.Set(1);
  writer.Simple(row.right == Right::kNone ? "no_auth" : "fast");
  writer.Integer(key);
  writer.Integer(key);
  writer.Integer(key > 0 ? 1 : 0);
  writer.Set(0);
  writer.Set(0);
  writer.Set(0);
  writer.Array(0);
}

void WriteDocs(const CommandRow& row, ReplyWriter& writer) {
  writer.Bulk(LowerCase(row.name));
  writer.Map(3);
  writer.Bulk("summary");
  writer.Bulk(row.summary);
  writer.Bulk("since");
  writer.Bulk("1.0.0");
  writer.Bulk("group");
  writer.Bulk(row.id < CommandId::kPing ? "generic" : "connection");
}

}  // namespace

void ListCommands(std::span<const std::string_view> words, Reply& reply) {
  ReplyWriter& writer = reply.writer;
  const std::string_view what = words.size() > 1 ? words[1] : "INFO";
  const auto rows = RowsOf(words.subspan(std::min<std::size_t>(words.size(), 2)));
  if (EqualsUpperCase(what, "INFO")) {
    writer.Array(rows.size());
    for (const CommandRow* row : rows) row == nullptr ? writer.Null() : WriteInfo(*row, writer);
  } else if (EqualsUpperCase(what, "DOCS")) {
    std::size_t known = 0;
    for (const CommandRow* row : rows) known += row != nullptr ? 1 : 0;
    writer.Map(known);
    for (const CommandRow* row : rows) {
      if (row != nullptr) WriteDocs(*row, writer);
    }
  } else if (EqualsUpperCase(what, "COUNT")) {
    writer.Integer(static_cast<std::int64_t>(Commands().size()));
  } else if (EqualsUpperCase(what, "LIST")) {
    writer.Array(Commands().size());
    for (const CommandRow& row : Commands()) writer.Bulk(LowerCase(row.name));
  } else {
    reply.Fail("ERR", "unknown subcommand " + Quoted(what) +
                          ". There are COMMAND COUNT, LIST, INFO and DOCS.");
  }
}

std::string UnknownCommandText(std::span<const std::string_view> words) {
  std::string repeated;
  for (const std::string_view word : words.subspan(1)) {
    if (repeated.size() >= kMostRepeated) break;
    repeated.append("'").append(word.substr(0, kMostRepeated - repeated.size())).append("' ");
  }
  return "unknown command '" + std::string(words[0].substr(0, kMostRepeated)) +
         "', with args beginning with: " + repeated;
}

std::string WrongNumberText(std::string_view upper_case_name) {
  return "wrong number of arguments for '" + LowerCase(upper_case_name) + "' command";
}

}  // namespace weir::resp
