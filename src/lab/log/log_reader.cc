// Puts the requests of all files into one order. Each block comes sorted; here is a heap of blocks,
// so that a log that was in order from the start is handed on as it is, a block at a time.
#include "lab/log/log_reader.h"

#include <algorithm>
#include <optional>

#include "lab/log/log_pipeline.h"

namespace weir::lab {
namespace {

constexpr std::size_t kBlockBytes = 262'144;
static_assert(kBlockBytes >= 4 * kMaxLineBytes);
// So many blocks are searched for lines that tell the format.
constexpr std::uint64_t kBlocksLookedAt = 16;
// However long the horizon is, no more than this is held.
constexpr std::size_t kMostHeldBytes = std::size_t{1} << 30;
// Fewer than these in a row are copied, so that whoever reads gets many at a time.
constexpr std::size_t kFewInARow = 64;
constexpr std::size_t kMostCopied = 1'024;

// In which order the next requests of two blocks come.
bool IsLater(const std::unique_ptr<ParsedBlock>& a, const std::unique_ptr<ParsedBlock>& b) {
  const WallTime a_time = a->records[a->told].time;
  const WallTime b_time = b->records[b->told].time;
  if (a_time != b_time) return a_time > b_time;
  return a->file != b->file ? a->file > b->file : a->text.number > b->text.number;
}

WallTime Before(WallTime time, Duration length) {
  return time < WallTime::min() + length ? WallTime::min() : time - length;
}

WallTime After(WallTime time, Duration length) {
  return time > WallTime::max() - length ? WallTime::max() : time + length;
}

class MergingReader final : public LogReader {
 public:
  MergingReader(const LogSettings& settings, std::vector<LogPipeline::File> files)
      : horizon_(settings.horizon),
        most_held_(settings.most_held),
        progress_(settings.progress),
        files_(files.size()) {
    for (std::size_t i = 0; i < files.size(); ++i) {
      counts_.push_back({.file = settings.files[i], .format = files[i].format.name});
    }
    pipeline_.emplace(std::move(files), horizon_, settings.threads);
    FindSafe();
  }

  std::span<const LogRecord> Next() override {
    for (std::unique_ptr<ParsedBlock>& block : used_up_) pipeline_->GiveBack(std::move(block));
    used_up_.clear();
    copies_.clear();
    while (copies_.size() < kMostCopied) {
      const bool is_full = held_bytes_ > kMostHeldBytes || held_records_ > most_held_;
      const bool may_tell = !heap_.empty() && (is_full || Head() <= safe_);
      if (!may_tell) {
        if (behind_ == kNone) break;
        TakeIn(behind_);
        FindSafe();
        continue;
      }
      if (!latest_) latest_ = After(Head(), kLongestLog);
      if (Head() > *latest_) {
        LeaveOutRest();
        continue;
      }
      const std::size_t run = RunLength(std::min(*latest_, is_full ? WallTime::max() : safe_));
      const bool in_place = run >= kFewInARow;
      if (in_place && !copies_.empty()) break;  // Those first.
      ParsedBlock& block = *heap_.front();
      LogRecord* const first = block.records.data() + block.told;
      for (std::size_t i = 0; i < run; ++i) first[i].line += block.lines_before;
      if (is_full) floor_ = std::max(floor_, first[run - 1].time);
      if (!in_place) copies_.insert(copies_.end(), first, first + run);
      Advance(run);
      if (in_place) return {first, run};
    }
    return copies_;
  }

  const std::vector<LogCounts>& counts() const override { return counts_; }

 private:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  struct FileState {
    std::optional<WallTime> newest{};
    std::uint64_t lines = 0;
    bool ended = false;
  };

  WallTime Head() const { return heap_.front()->records[heap_.front()->told].time; }

  // Up to which time all requests are known, and which file keeps it from being later.
  void FindSafe() {
    behind_ = kNone;
    safe_ = WallTime::max();
    for (std::size_t i = 0; i < files_.size(); ++i) {
      if (files_[i].ended) continue;
      const WallTime its = files_[i].newest ? Before(*files_[i].newest, horizon_) : WallTime::min();
      if (behind_ == kNone || its < safe_) {
        behind_ = i;
        safe_ = its;
      }
    }
  }

  void TakeIn(std::size_t number) {
    FileState& file = files_[number];
    std::unique_ptr<ParsedBlock> block = pipeline_->Take(number);
    file.ended = block->text.is_last;
    LogCounts& counts = counts_[number];
    // Those that are too late are the first, as they are sorted.
    const WallTime earliest =
        std::max(file.newest ? Before(*file.newest, horizon_) : WallTime::min(), floor_);
    while (block->told < block->records.size() && block->records[block->told].time < earliest) {
      if (block->counts.examples.size() < kMostExamples) {
        const std::uint64_t line = block->records[block->told].line;
        block->counts.examples.push_back(
            {.line = line, .why = kWhyLate, .text = LineOf(*block, line)});
      }
      ++block->counts.late;
      --block->counts.requests;
      ++block->told;
    }
    Add(block->counts, counts, file.lines);
    if (file.ended) counts.cut_short = pipeline_->cut_short(number);
    if (progress_ != nullptr) {
      progress_->Advance(block->counts.lines, block->text.input_bytes);
    }
    block->lines_before = file.lines;
    file.lines += block->counts.lines;
    if (block->told == block->records.size()) {
      pipeline_->GiveBack(std::move(block));
      return;
    }
    file.newest = std::max(file.newest.value_or(block->newest), block->newest);
    held_bytes_ += block->bytes();
    held_records_ += block->records.size();
    heap_.push_back(std::move(block));
    std::ranges::push_heap(heap_, IsLater);
  }

  // What is left of the first block is beyond what can be told.
  void LeaveOutRest() {
    const ParsedBlock& block = *heap_.front();
    LogCounts& counts = counts_[block.file];
    const std::size_t rest = block.records.size() - block.told;
    counts.requests -= rest;
    counts.unparsed += rest;
    if (counts.examples.size() < kMostExamples) {
      const std::uint64_t line = block.records[block.told].line;
      counts.examples.push_back(
          {.line = line + block.lines_before, .why = kWhyBeyond, .text = LineOf(block, line)});
    }
    Advance(rest);
  }

  static void Add(LogCounts& more, LogCounts& sum, std::uint64_t lines_before) {
    sum.lines += more.lines;
    sum.requests += more.requests;
    sum.blank += more.blank;
    sum.unparsed += more.unparsed;
    sum.too_long += more.too_long;
    sum.late += more.late;
    sum.whole_seconds = sum.whole_seconds && more.whole_seconds;
    std::ranges::sort(more.examples, {}, &LogCounts::Example::line);
    for (LogCounts::Example& example : more.examples) {
      if (sum.examples.size() >= kMostExamples) break;
      example.line += lines_before;
      sum.examples.push_back(std::move(example));
    }
  }

  // How many requests of the first block come before those of any other, up to a time.
  std::size_t RunLength(WallTime last) const {
    const ParsedBlock& block = *heap_.front();
    const auto* second = heap_.size() > 1 ? &heap_[1] : nullptr;
    if (heap_.size() > 2 && IsLater(heap_[1], heap_[2])) second = &heap_[2];
    bool is_first_of_equals = true;
    if (second != nullptr) {
      const ParsedBlock& other = **second;
      const WallTime its = other.records[other.told].time;
      if (its <= last) {
        last = its;
        is_first_of_equals = block.file != other.file ? block.file < other.file
                                                      : block.text.number < other.text.number;
      }
    }
    const auto from = block.records.begin() + static_cast<std::ptrdiff_t>(block.told);
    const auto fits = [&](const LogRecord& record) {
      return is_first_of_equals ? record.time <= last : record.time < last;
    };
    // Most often it is all of them, or few.
    if (fits(block.records.back())) return block.records.size() - block.told;
    std::size_t reach = 1;
    const std::size_t all = block.records.size() - block.told;
    while (reach < all && fits(from[static_cast<std::ptrdiff_t>(reach)])) reach *= 2;
    const auto to = from + static_cast<std::ptrdiff_t>(std::min(reach, all));
    return static_cast<std::size_t>(
        std::partition_point(from + static_cast<std::ptrdiff_t>(reach / 2), to, fits) - from);
  }

  void Advance(std::size_t run) {
    std::ranges::pop_heap(heap_, IsLater);
    std::unique_ptr<ParsedBlock>& block = heap_.back();
    block->told += run;
    if (block->told < block->records.size()) {
      std::ranges::push_heap(heap_, IsLater);
      return;
    }
    held_bytes_ -= block->bytes();
    held_records_ -= block->records.size();
    used_up_.push_back(std::move(block));
    heap_.pop_back();
  }

  const Duration horizon_;
  const std::size_t most_held_;
  Progress* const progress_;
  std::optional<LogPipeline> pipeline_;
  std::vector<LogCounts> counts_;
  std::vector<FileState> files_;
  std::vector<std::unique_ptr<ParsedBlock>> heap_;  // The one with the earliest request first.
  std::size_t held_bytes_ = 0;
  std::size_t held_records_ = 0;
  WallTime safe_{};
  std::size_t behind_ = kNone;
  WallTime floor_{WallTime::min()};                    // Nothing before this can be told any more.
  std::optional<WallTime> latest_{};                   // Known once one was told.
  std::vector<std::unique_ptr<ParsedBlock>> used_up_;  // Until the next call.
  std::vector<LogRecord> copies_;
};

// A log may begin with rubbish, or with a line of many megabytes: then what follows is looked at.
Result<void> FindFormatOf(const std::string& name, const std::string& asked,
                          const ColumnNames& names, LogPipeline::File& file) {
  std::optional<Error> first_error;
  for (std::uint64_t number = 0; number < kBlocksLookedAt; ++number) {
    const TextBlock& text = file.first.emplace_back(std::make_unique<ParsedBlock>())->text;
    file.reader->Read(file.first.back()->text);
    Result<FormatFound> format = FindFormat({.file = name,
                                             .begins = text.text(),
                                             .is_all = text.is_last && number == 0,
                                             .format = asked},
                                            names);
    if (format) {
      file.format = *std::move(format);
      file.format.heading_block = number;
      return {};
    }
    if (!first_error) first_error = format.error();
    if (format.error().code != ErrorCode::kNotFound || text.is_last) break;
  }
  return std::unexpected(*std::move(first_error));
}

}  // namespace

Result<std::unique_ptr<LogReader>> LogReader::Open(const LogSettings& settings,
                                                   std::istream& standard_input) {
  const auto wrong = [](std::string message) {
    return std::unexpected(Error{ErrorCode::kInvalidArgument, std::move(message)});
  };
  if (settings.files.empty()) return wrong("no log is named");
  if (std::ranges::count(settings.files, "-") > 1) {
    return wrong("standard input can be read only once");
  }
  if (settings.horizon < Duration(0)) return wrong("the horizon must not be negative");
  const ColumnNames names{
      .named = settings.columns, .wanted = settings.wanted, .user_agent = settings.user_agent};
  if (Result<void> right = CheckNames(names); !right) return std::unexpected(right.error());

  std::uint64_t total = 0;
  bool total_known = true;
  std::vector<LogPipeline::File> files;
  for (const std::string& name : settings.files) {
    Result<std::unique_ptr<LogInput>> input = LogInput::Open(name, standard_input);
    if (!input) return std::unexpected(input.error());
    total += (*input)->bytes();
    total_known = total_known && (*input)->bytes() > 0;
    LogPipeline::File& file = files.emplace_back();
    file.reader = std::make_unique<BlockReader>(*std::move(input), kBlockBytes);
    if (Result<void> found = FindFormatOf(name, settings.format, names, file); !found) {
      return std::unexpected(found.error());
    }
  }
  if (settings.progress != nullptr && total_known) settings.progress->SetTotal(total);
  return std::make_unique<MergingReader>(settings, std::move(files));
}

}  // namespace weir::lab
