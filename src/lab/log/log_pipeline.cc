#include "lab/log/log_pipeline.h"

#include <algorithm>

namespace weir::lab {
namespace {

std::size_t ThreadsFor(int asked) {
  if (asked > 0) return static_cast<std::size_t>(asked);
  return std::max(1U, std::thread::hardware_concurrency());
}

}  // namespace

LogPipeline::LogPipeline(std::vector<File> files, Duration horizon, int threads)
    : horizon_(horizon), ahead_(2 * ThreadsFor(threads) + 2) {
  for (File& file : files) files_.push_back({.source = std::move(file)});
  for (std::size_t i = 0; i < ThreadsFor(threads); ++i) {
    threads_.emplace_back([this] { Work(); });
  }
}

LogPipeline::~LogPipeline() {
  {
    const std::scoped_lock lock(mutex_);
    stops_ = true;
  }
  may_read_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool LogPipeline::MayRead(std::size_t file) const {
  const State& state = files_[file];
  // Of files whose time has not come one block is enough to know when it will.
  return !state.ended && !state.is_being_read && state.under_way < (file == wanted_ ? ahead_ : 1);
}

std::size_t LogPipeline::FileToRead() const {
  if (MayRead(wanted_)) return wanted_;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (MayRead(i)) return i;
  }
  return kNone;
}

void LogPipeline::Work() {
  std::vector<std::unique_ptr<LineParser>> parsers(files_.size());
  std::unique_lock lock(mutex_);
  for (;;) {
    std::size_t number = kNone;
    may_read_.wait(lock, [&] { return stops_ || (number = FileToRead()) != kNone; });
    if (stops_) return;
    State& file = files_[number];
    file.is_being_read = true;
    ++file.under_way;
    std::unique_ptr<ParsedBlock> block;
    const bool is_read = !file.source.first.empty();
    if (is_read) {
      block = std::move(file.source.first.front());
      file.source.first.pop_front();
    } else if (!spare_.empty()) {
      block = std::move(spare_.back());
      spare_.pop_back();
    }
    lock.unlock();

    if (!block) block = std::make_unique<ParsedBlock>();
    if (!is_read) file.source.reader->Read(block->text);

    lock.lock();
    file.is_being_read = false;
    file.ended = block->text.is_last;
    lock.unlock();
    may_read_.notify_one();

    if (!parsers[number]) parsers[number] = file.source.format.format->MakeParser();
    ParseBlock(*block, *parsers[number],
               {.heading_lines = file.source.format.heading_lines,
                .heading_block = file.source.format.heading_block,
                .horizon = horizon_,
                .file = static_cast<std::uint32_t>(number)});

    lock.lock();
    const std::uint64_t place = block->text.number;
    file.done.emplace(place, std::move(block));
    is_done_.notify_one();
  }
}

std::unique_ptr<ParsedBlock> LogPipeline::Take(std::size_t number) {
  std::unique_lock lock(mutex_);
  State& file = files_[number];
  if (file.all_taken) return nullptr;
  if (wanted_ != number) {
    wanted_ = number;
    may_read_.notify_all();
  }
  is_done_.wait(lock, [&] { return file.done.contains(file.next); });
  std::unique_ptr<ParsedBlock> block = std::move(file.done.extract(file.next).mapped());
  ++file.next;
  --file.under_way;
  file.all_taken = block->text.is_last;
  may_read_.notify_one();
  return block;
}

void LogPipeline::GiveBack(std::unique_ptr<ParsedBlock> block) {
  const std::scoped_lock lock(mutex_);
  if (spare_.size() < ahead_) spare_.push_back(std::move(block));
}

}  // namespace weir::lab
