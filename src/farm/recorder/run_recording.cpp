#include "farm/recorder/run_recording.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sentence.h"
#include "farm/recorder/read_back.h"
#include "formats/full_event.h"

namespace rodeo::farm {

using formats::RecordHead;
using formats::RecordStatus;
using formats::RecordStream;

namespace {

// Number of bytes of a request that are decoded in one piece: the head and the event's header.
constexpr std::size_t kMostFront = formats::kMostRecordHeadBytes + (64 << 10);

// Returns the first bytes of a message in one piece, in place or copied to `scratch`.
std::span<const std::byte> front_of(std::span<const std::span<const std::byte>> pieces, std::vector<std::byte>& scratch) {
  if (pieces.empty()) return {};
  if (pieces.size() == 1 || pieces[0].size() >= kMostFront) return pieces[0].first(std::min(pieces[0].size(), kMostFront));
  scratch.clear();
  for (const auto piece : pieces) {
    const auto some = piece.first(std::min(piece.size(), kMostFront - scratch.size()));
    scratch.insert(scratch.end(), some.begin(), some.end());
  }
  return scratch;
}

}  // namespace

RunRecording::RunRecording(FileSettings keys, std::string name, std::uint32_t run_number,
                           const std::function<void(std::string)>& say)
    : settings_(std::move(keys)), name_(std::move(name)), run_number_(run_number) {
  read_back_ids(
      {.directory = settings_.directory, .project = settings_.project, .recorder = name_, .run_number = run_number}, ids_,
      say);
  counters_.add(RecorderCounter::read_back, ids_.size());
}

RunRecording::~RunRecording() = default;

void RunRecording::refuse(Ticket ticket, RecordStatus status) {
  using enum RecorderCounter;
  switch (status) {
    case RecordStatus::malformed: counters_.add(malformed); break;
    case RecordStatus::other_run: counters_.add(other_run); break;
    case RecordStatus::disk_full: counters_.add(refused_disk_full); break;
    case RecordStatus::write_failed: counters_.add(refused_write_failed); break;
    case RecordStatus::taken_over: counters_.add(RecorderCounter::taken_over); break;
    default: break;
  }
  answers_.push_back({ticket, status});
}

void RunRecording::answer_had_already(Ticket ticket, const RecordedEvents::Stream& stream) {
  counters_.add(RecorderCounter::had_already);
  answers_.push_back(
      {ticket, RecordedEvents::is_debug(stream) ? RecordStatus::had_already_debug : RecordStatus::had_already});
}

RecordStatus RunRecording::refusal_status() const {
  return trouble_code_.ends_with("disk_full") ? RecordStatus::disk_full : RecordStatus::write_failed;
}

bool RunRecording::offer(Ticket ticket, std::span<const std::span<const std::byte>> pieces, std::size_t bytes,
                         std::uint64_t now_ns) {
  const std::span<const std::byte> front = front_of(pieces, front_);
  auto decoded = formats::decode_record_head(front);
  if (!decoded) {
    refuse(ticket, RecordStatus::malformed);
    return true;
  }
  const std::size_t event_bytes = bytes - decoded->bytes;
  const auto event = formats::decode_event_header(front.subspan(decoded->bytes), event_bytes);
  if (!event ||
      formats::WordView(front.subspan(decoded->bytes))[formats::event_word::kSize] * formats::kWordBytes != event_bytes ||
      event->global_id != decoded->head.global_id) {
    refuse(ticket, RecordStatus::malformed);
    return true;
  }
  if (event->run_number != run_number_) {
    refuse(ticket, RecordStatus::other_run);
    return true;
  }
  const std::uint64_t id = decoded->head.global_id;
  if (decoded->head.assigned_again) take_over(id);
  const auto had = [&] {
    answer_had_already(ticket, *stream_of(id));
    return true;
  };
  const bool partial = ids_.partial_streams(id) != nullptr;
  if (has(id) && !partial) return had();
  if (const auto twin = under_way_.find(id); twin != under_way_.end()) {
    events_[twin->second].tickets.push_back(ticket);
    return true;
  }
  if (!partial && !decoded->head.assigned_again && taken_over_.contains(id)) {
    refuse(ticket, RecordStatus::taken_over);
    return true;
  }
  // An event that is safe in one of its streams is not refused, because the next recorder would write it a second time.
  if (partial && (ending_ || trouble_until_ns_ > now_ns || has_another_decision(id, decoded->head.streams))) return had();
  if (ending_) {
    refuse(ticket, RecordStatus::not_ready);
    return true;
  }
  if (trouble_until_ns_ > now_ns) {
    refuse(ticket, refusal_status());
    return true;
  }
  // If one of the files has no free buffer, no file gets a copy yet.
  for (const RecordStream& stream : decoded->head.streams) {
    StreamFile* const file = file_of(stream, event->lumi_block, now_ns);
    if (file == nullptr || file->over() || file->takes_at_once(event_bytes)) continue;
    counters_.add(RecorderCounter::waits_for_disk);
    return false;
  }
  // Lists the pieces of the event, without the head of the request. The bytes stay in place.
  event_pieces_.clear();
  std::size_t skip = decoded->bytes;
  for (const auto piece : pieces) {
    const std::size_t here = std::min(skip, piece.size());
    skip -= here;
    if (here < piece.size()) event_pieces_.push_back(piece.subspan(here));
  }
  write_copies(ticket, decoded->head, event->lumi_block, event_bytes, now_ns);
  return true;
}

// Handles an event that only some of its streams have: removes from `streams` those that have it. True: none of `streams`
// has the event, or all have it. Then another node decided it before, and this node cannot know that decision.
bool RunRecording::has_another_decision(std::uint64_t id, std::vector<RecordStream>& streams) {
  const auto& there = *ids_.partial_streams(id);
  const auto erased = std::erase_if(streams, [&](const RecordStream& stream) {
    return std::ranges::find(there, ids_.stream_number(stream.type, stream.name)) != there.end();
  });
  return erased == 0 || streams.empty();
}

void RunRecording::write_copies(Ticket ticket, const RecordHead& head, std::uint32_t lumi_block, std::size_t bytes,
                                std::uint64_t now_ns) {
  if (free_events_.empty()) {
    free_events_.push_back(static_cast<StreamFile::Waiter>(events_.size()));
    events_.emplace_back();
  }
  const StreamFile::Waiter waiter = free_events_.back();
  Event& event = events_[waiter];
  event.id = head.global_id;
  event.bytes = bytes;
  event.copies = event.lost = 0;
  event.safe = ids_.partial_streams(head.global_id) != nullptr ? 1 : 0;
  event.tickets.assign(1, ticket);
  const auto to_keep = std::ranges::find_if(head.streams, [](const RecordStream& one) { return one.type != "debug"; });
  const RecordStream& counts_as = to_keep == head.streams.end() ? head.streams.front() : *to_keep;
  event.stream = ids_.stream_number(counts_as.type, counts_as.name);
  for (const RecordStream& stream : head.streams) {
    StreamFile* const file = file_of(stream, lumi_block, now_ns);
    if (file != nullptr && file->append(event_pieces_, bytes, waiter, now_ns)) {
      ++event.copies;
    } else {
      if (file != nullptr) fail({file->status().code, file->status().failure}, now_ns);
      ++event.lost;
    }
  }
  if (event.copies == 0 && event.safe > 0) {
    answer_had_already(ticket, *stream_of(head.global_id));
    return;
  }
  if (event.copies == 0) {
    refuse(ticket, refusal_status());
    return;
  }
  free_events_.pop_back();
  under_way_.emplace(head.global_id, waiter);
  newest_lumi_block_ = std::max(newest_lumi_block_, lumi_block);
}

StreamFile* RunRecording::file_of(const RecordStream& stream, std::uint32_t lumi_block, std::uint64_t now_ns) {
  const std::uint32_t block = stream.obeys_lumi_block ? lumi_block : 0;
  const auto found = files_.find({stream.type, stream.name, block});
  if (found != files_.end() && !found->second->over()) return found->second.get();
  if (found != files_.end()) {
    // The file is closed but not collected: the next files begin behind it.
    ending_files_.push_back(std::move(found->second));
    files_.erase(found);
  }
  if (trouble_until_ns_ > now_ns) return nullptr;
  try {
    auto made = std::make_unique<StreamFile>(sequence_settings(settings_, name_, run_number_, stream, block));
    if (delay_.count() > 0) made->slow_down(delay_);
    trouble_.clear();
    return files_.emplace(FileKey{stream.type, stream.name, block}, std::move(made)).first->second.get();
  } catch (const SetupError& error) {
    fail(error.error(), now_ns);
  } catch (const std::exception& error) {  // There are no more threads, or the directory is unreadable.
    fail({"readout.cannot_write", fmt::format("cannot begin a file: {}", error.what()), settings_.directory}, now_ns);
  }
  return nullptr;
}

void RunRecording::fail(const Error& error, std::uint64_t now_ns) {
  if (trouble_.empty()) messages_.push_back("no event is accepted: " + base::in_a_line(error));
  trouble_ = base::in_a_line(error);
  trouble_code_ = error.code;
  trouble_until_ns_ = now_ns + static_cast<std::uint64_t>(settings_.retry_interval.count());
}

void RunRecording::on_copy_finished(StreamFile::Waiter waiter, bool safe) {
  Event& event = events_[waiter];
  --event.copies;
  ++(safe ? event.safe : event.lost);
  if (event.copies > 0) return;
  if (event.safe > 0) {
    ids_.add(event.id, event.stream);
    ids_.mark_complete(event.id);
    counters_.add(RecorderCounter::events_recorded);
    counters_.add(RecorderCounter::event_bytes, event.bytes);
    if (event.lost > 0) counters_.add(RecorderCounter::copies_lost);
  }
  for (std::size_t i = 0; i < event.tickets.size(); ++i) {
    if (event.safe == 0) {
      refuse(event.tickets[i], refusal_status());
    } else if (i == 0) {
      answers_.push_back({event.tickets[i], RecordStatus::recorded});
    } else {
      answer_had_already(event.tickets[i], *stream_of(event.id));
    }
  }
  under_way_.erase(event.id);
  free_events_.push_back(waiter);
}

void RunRecording::collect_results(StreamFile& file, std::uint64_t now_ns) {
  if (file.over()) {
    // The reason must be known before the answers that contain it.
    if (const auto status = file.status(); !status.failure.empty()) fail({status.code, status.failure}, now_ns);
  }
  file.report_finished([&](StreamFile::Waiter waiter, bool safe) { on_copy_finished(waiter, safe); });
}

void RunRecording::poll(std::uint64_t now_ns, std::vector<Answer>& answers) {
  for (auto& [key, file] : files_) {
    file->flush_if_due(settings_, now_ns);
    collect_results(*file, now_ns);
  }
  end_past_files(now_ns);
  for (auto at = files_.begin(); at != files_.end();) {
    if (!at->second->over()) {
      ++at;
      continue;
    }
    ending_files_.push_back(std::move(at->second));
    at = files_.erase(at);
  }
  std::erase_if(ending_files_, [&](const std::unique_ptr<StreamFile>& file) {
    collect_results(*file, now_ns);
    if (!file->over() || !file->idle()) return false;
    const auto status = file->status();
    closed_.insert(closed_.end(), status.files.begin(), status.files.end());
    return true;
  });
  answers.insert(answers.end(), answers_.begin(), answers_.end());
  answers_.clear();
}

void RunRecording::end_past_files(std::uint64_t now_ns) {
  const auto end = [&](auto at) {
    at->second->end();
    ending_files_.push_back(std::move(at->second));
    return files_.erase(at);
  };
  const auto linger = static_cast<std::uint64_t>(settings_.lumi_block_linger.count());
  for (auto at = files_.begin(); at != files_.end();) {
    const std::uint32_t block = std::get<2>(at->first);
    const bool past = block != 0 && block < newest_lumi_block_ && now_ns - at->second->last_append_ns() > linger;
    at = ending_ || past ? end(at) : std::next(at);
  }
  while (files_.size() > settings_.most_open)
    end(std::ranges::min_element(files_, {}, [](const auto& one) { return one.second->last_append_ns(); }));
}

void RunRecording::end() {
  if (std::exchange(ending_, true)) return;
  counters_.add(RecorderCounter::copies_lost, ids_.partial_events());
}

void RunRecording::slow_down(std::chrono::nanoseconds each_write) {
  delay_ = each_write;
  for (auto& [key, file] : files_) file->slow_down(each_write);
}

std::vector<FragmentConsumer::File> RunRecording::take_closed() { return std::exchange(closed_, {}); }

}  // namespace rodeo::farm
