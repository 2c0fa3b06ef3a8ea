#include "input/joined_stream.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/units.h"

namespace rodeo::input {
namespace {

constexpr std::size_t kMemory = std::size_t{64} << 20;
constexpr std::size_t kMoreChunks = 4;
constexpr std::size_t kPages = 256;
constexpr std::size_t kPage = 4096;
// Builders read a little ahead, and kernels load beyond the end of a chunk. An odd number of pages between chunks spreads
// them over the caches.
constexpr std::size_t kSlack = kPage;

std::size_t round_up(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }
std::size_t stride_of(std::size_t chunk_bytes) { return round_up(chunk_bytes + kSlack) | kPage; }

}  // namespace

JoinedStream::Settings JoinedStream::settings(std::uint32_t max_chunk_bytes, std::size_t links) {
  return {.max_chunk_bytes = max_chunk_bytes,
          .memory_bytes = std::max(kMemory, (links + kMoreChunks) * max_chunk_bytes),
          .pages = std::max(kPages, links + kMoreChunks)};
}

JoinedStream::JoinedStream(std::unique_ptr<DataStream> stream, std::size_t links, Settings settings)
    : settings_(settings),
      stream_(std::move(stream)),
      sources_(stream_->sources()),
      open_(links),
      chunks_(std::make_unique<Chunk[]>(settings.pages + links)),
      stretches_(std::make_unique<Stretch[]>(settings.pages)) {
  const std::size_t count = settings.pages + links;  // each link has one chunk that is being joined
  const std::size_t stride = stride_of(settings.max_chunk_bytes);
  memory_ = base::Mapping(
      ::mmap(nullptr, count * stride, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
      count * stride);
  if (!memory_) {
    throw SetupError(
        {"base.memory",
         fmt::format("no address space for {} chunks of {}", count, base::format_size(settings.max_chunk_bytes)),
         "readout.input.max_chunk", "make max_chunk smaller, or lift the limit on address space (ulimit -v)"});
  }
  free_.reserve(count);
  for (std::size_t i = count; i-- > 0;) {
    chunks_[i].stream = this;
    chunks_[i].kind = Kind::chunk;
    chunks_[i].memory = memory_.data() + i * stride;
    free_.push_back(&chunks_[i]);
  }
  for (std::size_t i = settings.pages; i-- > 0;) {
    stretches_[i].stream = this;
    stretches_[i].kind = Kind::stretch;
    free_stretches_.put(stretches_[i]);
  }
}

JoinedStream::~JoinedStream() {
  for (const Source& source : sources_) {
    if (source.page != nullptr) source.page->drop();
  }
}

// ---- pages

PollStatus JoinedStream::poll(Page*& out) {
  collect_returned();
  bool blocked = false;
  for (Source& source : sources_) {
    if (source.page == nullptr || (source.held && !given_up_)) continue;
    if (advance(source, out)) return PollStatus::page;
    blocked = blocked || source.page != nullptr;
  }
  if (blocked) return PollStatus::full;
  if (given_up_) return end_chunk(true, out) ? PollStatus::page : PollStatus::end;
  for (;;) {
    Page* page = nullptr;
    const PollStatus status = stream_->poll(page);
    if (status != PollStatus::page) return end_chunk(status == PollStatus::end, out) ? PollStatus::page : status;
    if (!in_parts(*page)) {
      out = page;
      return PollStatus::page;
    }
    Source& source = sources_[stream_->source_of(page->runs.front().link)];
    source.page = page;
    source.at = 0;
    if (advance(source, out)) return PollStatus::page;
    if (source.page != nullptr) return PollStatus::full;
  }
}

bool JoinedStream::in_parts(const Page& page) const {
  if (page.runs.empty()) return false;
  if (std::ranges::any_of(page.runs, &ChunkRun::more_follows)) return true;
  const Source& source = sources_[stream_->source_of(page.runs.front().link)];
  return source.begun != 0 && std::ranges::any_of(page.runs, [&](const ChunkRun& run) { return !whole(run); });
}

// Continues with the page of a source. False: the page is finished and has no data to deliver, or there is no memory for
// more.
bool JoinedStream::advance(Source& source, Page*& out) {
  const std::span<const ChunkRun> runs = source.page->runs;
  while (source.at < runs.size()) {
    const ChunkRun& run = runs[source.at];
    if (source.first_taken || whole(run)) {
      Stretch* const stretch = free_stretches_.acquire();
      if (stretch == nullptr) return false;
      std::size_t end = source.at + 1;
      if (std::exchange(source.first_taken, false)) {
        stretch->rest = run;
        --stretch->rest.count;
        if (run.entries != nullptr)
          ++stretch->rest.entries;
        else
          stretch->rest.data += run.stride;
        stretch->runs = {&stretch->rest, 1};
      } else {
        while (end < runs.size() && whole(runs[end])) ++end;
        stretch->runs = runs.subspan(source.at, end - source.at);
      }
      source.at = end;
      stretch->of = source.page;
      if (end == runs.size())
        source.page = nullptr;  // the stretch takes over our reference
      else
        source.page->references.fetch_add(1, std::memory_order_relaxed);
      stretch->references.store(1, std::memory_order_relaxed);
      out = stretch;
      return true;
    }
    Chunk* chunk = open_[run.link];
    if (chunk == nullptr) {
      chunk = begin_chunk(run.link);
      if (chunk == nullptr) return false;
      ++source.begun;
    }
    append(*chunk, run);
    const bool ends = !run.more_follows;
    source.first_taken = ends && run.count > 1;
    if (!source.first_taken && ++source.at == runs.size()) std::exchange(source.page, nullptr)->drop();
    if (ends) {
      hand_out(source, static_cast<LinkIndex>(chunk->run.link), out);
      return true;
    }
    if (source.page == nullptr) return false;
  }
  return false;
}

void JoinedStream::hold(std::uint32_t source, bool held) {
  sources_[source].held = held;
  stream_->hold(source, held);
}

bool JoinedStream::source_ended(std::uint32_t source) const {
  return sources_[source].page == nullptr && sources_[source].begun == 0 && stream_->source_ended(source);
}

// ---- chunks

JoinedStream::Chunk* JoinedStream::begin_chunk(LinkIndex link) {
  const std::size_t out = out_chunks_.get();
  if (out == settings_.pages || (out > 0 && out_bytes_.get() + settings_.max_chunk_bytes > settings_.memory_bytes))
    return nullptr;
  Chunk* const chunk = free_.back();
  free_.pop_back();
  chunk->run = {.data = chunk->memory, .count = 1, .link = link};
  open_[link] = chunk;
  return chunk;
}

void JoinedStream::append(Chunk& chunk, const ChunkRun& part) {
  const std::span<const std::byte> bytes = part.chunk(0);
  const std::size_t room = settings_.max_chunk_bytes - chunk.run.size;
  const std::size_t fits = std::min(bytes.size(), room);
  const std::size_t end = chunk.run.size + fits;
  if (end > chunk.touched) {
    touched_ += round_up(end) - chunk.touched;
    chunk.touched = round_up(end);
  }
  std::memcpy(chunk.memory + chunk.run.size, bytes.data(), fits);
  chunk.run.size = static_cast<std::uint32_t>(end);
  chunk.run.status |= part.chunk_status(0);
  if (fits == bytes.size()) return;
  counts_.cut_bytes.add(bytes.size() - fits);
  if (room != 0 || (chunk.run.status & chunk_status::kSoftwareTruncated) == 0) counts_.cut_chunks.add(1);
  chunk.run.status |= chunk_status::kSoftwareTruncated;
}

void JoinedStream::hand_out(Source& source, LinkIndex link, Page*& out) {
  Chunk& chunk = *std::exchange(open_[link], nullptr);
  --source.begun;
  chunk.run.stride = chunk.run.size;
  chunk.runs = {&chunk.run, 1};
  chunk.references.store(1, std::memory_order_relaxed);
  out_chunks_.add(1);
  out_bytes_.add(chunk.run.size);
  counts_.joined_chunks.add(1);
  out = &chunk;
}

// Delivers the first chunk without an end, of a source that has ended, or (`over`) of any source.
bool JoinedStream::end_chunk(bool over, Page*& out) {
  for (std::uint32_t number = 0; number < sources_.size(); ++number) {
    Source& source = sources_[number];
    if (source.begun == 0 || source.page != nullptr || !(over || stream_->source_ended(number))) continue;
    for (std::size_t link = 0; link < open_.size(); ++link) {
      Chunk* const chunk = open_[link];
      if (chunk == nullptr || stream_->source_of(static_cast<LinkIndex>(link)) != number) continue;
      if ((chunk->run.status & chunk_status::kSoftwareTruncated) == 0) counts_.cut_chunks.add(1);
      chunk->run.status |= chunk_status::kSoftwareTruncated;
      without_end_.add(1);
      hand_out(source, static_cast<LinkIndex>(link), out);
      return true;
    }
  }
  return false;
}

// ---- memory

void JoinedStream::release(Page& page) noexcept {
  auto& own = static_cast<OwnPage&>(page);
  if (own.kind == Kind::chunk) return returned_.give_back(static_cast<Chunk&>(own));
  auto& stretch = static_cast<Stretch&>(own);
  stretch.of->drop();
  free_stretches_.give_back(stretch);
}

void JoinedStream::collect_returned() {
  while (Chunk* const chunk = returned_.acquire()) {
    out_chunks_.set(out_chunks_.get() - 1);
    out_bytes_.set(out_bytes_.get() - chunk->run.size);
    free_.push_back(chunk);
  }
  if (touched_ > 2 * settings_.memory_bytes) trim();
}

// Long chunks leave memory mapped in many free chunks: those free for longest return theirs first.
void JoinedStream::trim() {
  for (Chunk* const chunk : free_) {
    if (touched_ <= settings_.memory_bytes) return;
    if (chunk->touched == 0) continue;
    ::madvise(chunk->memory, chunk->touched, MADV_DONTNEED);
    touched_ -= std::exchange(chunk->touched, 0);
  }
}

std::uint64_t JoinedStream::clock_ns() const {
  const bool behind =
      std::ranges::any_of(sources_, [](const Source& source) { return source.page != nullptr && !source.held; });
  if (!behind) clock_ns_ = stream_->clock_ns();
  return clock_ns_;
}

StreamCounters JoinedStream::counters() const {
  StreamCounters counters = stream_->counters();
  counters.chunks += without_end_.get();
  return counters;
}

double JoinedStream::memory_fill() const {
  const auto share = [](std::size_t of, std::size_t all) { return static_cast<double>(of) / static_cast<double>(all); };
  return std::max({stream_->memory_fill(), share(out_chunks_.get(), settings_.pages),
                   std::min(1.0, share(out_bytes_.get(), settings_.memory_bytes))});
}

}  // namespace rodeo::input
