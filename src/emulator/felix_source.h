// The data of a FELIX card's links: chunks of provable payload for every trigger on every E-link, in blocks.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "emulator/chunk_books.h"
#include "emulator/felix_kernels.h"
#include "emulator/link_pacer.h"
#include "formats/block_encoder.h"
#include "formats/from_host.h"
#include "formats/front_end_link.h"
#include "formats/provable.h"
#include "trigger/range.h"

namespace rodeo::emulator {

struct FelixSourceSettings {
  bool full_mode = false;        ///< one E-link per link
  unsigned links = 24;           ///< links of the function, at most 24
  unsigned elinks_per_link = 8;  ///< E-links of a link in GBT mode, at most 64
  unsigned elinks = 0;           ///< number of the detector's E-links enabled at the start; 0: all
  /// FULL mode: number of neighbours that carry the triggers in turn, by L1 id; divides `links`
  unsigned links_per_group = 1;
  std::size_t chunk_bytes = 40;
  std::size_t chunk_bytes_max =
      0;  ///< upper limit of chunk sizes, if larger than chunk_bytes; the size is a pure function of link and trigger
  formats::BlockFormat format = {};
  bool loopback = false;  ///< data sent to E-links 62 and 63 (IC, EC) of a link come back on them
  formats::FromHostLength from_host_length = formats::FromHostLength::bytes;
  bool ttc_link = false;  ///< E-group 7, E-path 3 of link 0 sends the trigger's own packets
  std::uint32_t detector = 0;
  std::uint32_t connector = 0;
  std::uint64_t seed = 1;
  bool crc = false;
  std::uint32_t l1id_bits = 32;
  std::uint32_t l1id_counter = 0;   ///< 32: chunks carry a counter of 32 bits that event counter resets do not change
  double link_bits_per_second = 0;  ///< line speed of a link (FULL mode) or E-link (GBT), 8b/10b; 0: only memory limits it
};

/// Receives complete blocks, aligned to 64 bytes.
class BlockSink {
 public:
  virtual ~BlockSink() = default;
  /// Returns the fate of the block: sent, dropped or unmapped.
  virtual BlockFate block(unsigned link, std::span<const std::byte> block) = 0;
  /// Called when a fault has lost a block.
  virtual void lost(unsigned link) = 0;
};

/// For one thread. Allocates only in the constructor, and when append() gets more triggers than ever before.
class FelixSource {
 public:
  static constexpr unsigned kMaxLinks = 24;
  static constexpr std::uint16_t kTtcElink = 7U << 3 | 3U;
  static constexpr unsigned kFirstControlElink = formats::kIcElink;
  static constexpr unsigned kControlElinks = 2;

  explicit FelixSource(FelixSourceSettings settings);

  const FelixSourceSettings& settings() const { return settings_; }

  /// Sets the enabled E-links of a link, one bit each.
  void enable(unsigned link, std::uint64_t elinks) { enabled_[link] = elinks; }
  std::uint64_t enabled(unsigned link) const { return enabled_[link]; }
  /// Sets the state of a link: a link that is down sends nothing.
  void set_up(unsigned link, bool up) { up_[link] = up; }

  /// The highest number of bytes of blocks that one trigger adds on one link, and of blocks that may be open there.
  double bytes_per_trigger(unsigned link) const;
  std::size_t open_blocks(unsigned link) const;

  /// The number of triggers that the links could have carried by now; unlimited without a link speed.
  std::uint64_t triggers_on_links(std::uint64_t now_ns) const;
  /// The time that the busiest link or E-link was occupied.
  std::uint64_t occupied_us() const { return pacer_.occupied_us(); }

  /// Appends the chunks of these triggers on every link. A block goes to the sink when it is complete.
  void append(std::span<const trigger::TriggerRange> triggers, BlockSink& sink, std::uint64_t now_ns);
  /// True if the E-link sends back what it receives: it is enabled and its link is up.
  bool loops_back(unsigned link, unsigned elink) const;
  /// Sends one chunk with these bytes on an E-link that loops back.
  void loop_back(unsigned link, unsigned elink, std::span<const std::byte> message, BlockSink& sink, std::uint64_t now_ns);
  /// Ends every block that began at `begun_ns` (append()'s clock) or before with a time-out, as firmware does with old
  /// blocks.
  void flush(BlockSink& sink, std::uint64_t begun_ns = kNone);
  /// The oldest open block began at this time or later; kNone: no block is open.
  std::uint64_t oldest_ns() const { return oldest_ns_; }
  static constexpr std::uint64_t kNone = std::numeric_limits<std::uint64_t>::max();
  /// Drops the contents of open blocks; they count as cut off.
  void clear();

  // Sets a fault of the link's next block or chunk.
  void corrupt_block(unsigned link) { corrupt_[link] = true; }
  void truncate_chunk(unsigned link) { faults_[link].truncate = true; }
  void flip_l1id(unsigned link) { faults_[link].flip_l1id = true; }
  void shift_bcid(unsigned link) { faults_[link].shift_bcid = true; }
  /// Starts or ends a fault of all chunks of the link.
  void shift_bcids(unsigned link, bool shift) { faults_[link].shift_bcids = shift; }
  void lose_block(unsigned link) { lose_[link] = true; }

  const ChunkBooks& books() const { return books_; }
  std::uint64_t blocks_lost() const { return blocks_lost_; }
  std::uint64_t blocks_corrupted() const { return blocks_corrupted_; }
  std::uint64_t l1ids_flipped() const { return l1ids_flipped_; }
  std::uint64_t bcids_shifted() const { return bcids_shifted_; }

 private:
  struct Elink {
    formats::BlockEncoder encoder;
    unsigned link;
    unsigned bit;  // bit of the E-link in enabled_
    std::uint32_t link_id;
    std::byte* memory;  // memory of its open block
    OpenBlockBooks books = {};
    std::uint64_t begun_ns = 0;  // start of the open block
  };

  /// Faults of the next chunk of a link; shift_bcids: of all its chunks.
  struct ChunkFaults {
    bool truncate = false;
    bool flip_l1id = false;
    bool shift_bcid = false;
    bool shift_bcids = false;
    bool any() const { return truncate || flip_l1id || shift_bcid || shift_bcids; }
  };

  void begin_block(Elink& elink);
  template <std::size_t kBytes, typename TrailerWord>
  std::size_t append_wholes(Elink& elink, std::size_t first, std::size_t bytes);
  std::size_t append_wholes(Elink& elink, std::size_t first);
  void append_provable(Elink& elink, BlockSink& sink);
  void prepare(std::span<const trigger::TriggerRange> triggers, unsigned turn);
  void push_faulty(Elink& elink, std::size_t trigger, std::size_t bytes, BlockSink& sink);
  std::uint64_t faulty_header(ChunkFaults& faults, std::uint64_t header, std::uint64_t key);
  void append_ttc(std::span<const trigger::TriggerRange> triggers, BlockSink& sink);
  void push(Elink& elink, std::span<const std::byte> chunk, BlockSink& sink, std::uint8_t status = chunk_status::kOk);
  void push_provable(Elink& elink, std::size_t bytes, std::size_t whole, std::uint64_t header, std::uint64_t key,
                     BlockSink& sink, std::uint8_t status);
  void write_part(std::byte* to, std::size_t from, std::size_t bytes, std::uint64_t header, std::uint64_t key,
                  std::size_t whole) const;
  /// `goes_on`: the last chunk of the block continues in the next one.
  void emit(Elink& elink, BlockSink& sink, bool goes_on);
  std::size_t chunk_bytes_of(std::uint64_t key) const;
  double wire_bytes(std::size_t chunk_bytes) const;
  void occupy(std::size_t lane, std::uint64_t now_ns);

  FelixSourceSettings settings_;
  formats::Provable provable_;
  FelixKernels kernels_ = felix_kernels();
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> memory_;   // memory of the open blocks
  std::vector<Elink> elinks_;  // E-links of the detector, then those that loop back, then the trigger's
  std::size_t detector_elinks_ = 0;
  std::uint64_t now_ns_ = 0;  // time of the last append()
  std::uint64_t oldest_ns_ = kNone;
  LinkPacer pacer_;                     // one lane per E-link of the detector
  std::vector<std::uint64_t> headers_;  // headers for the triggers of one append() that the links of one turn carry
  std::vector<std::uint32_t> l1ids_;
  std::vector<std::uint64_t> keys_;  // keys of one E-link
  std::vector<std::byte> chunk_;
  std::array<std::uint64_t, kMaxLinks> enabled_{};
  std::array<bool, kMaxLinks> up_{};
  std::array<bool, kMaxLinks> corrupt_{};
  std::array<ChunkFaults, kMaxLinks> faults_{};
  std::array<bool, kMaxLinks> lose_{};
  ChunkBooks books_;
  std::uint64_t blocks_lost_ = 0;
  std::uint64_t blocks_corrupted_ = 0;
  std::uint64_t l1ids_flipped_ = 0;
  std::uint64_t bcids_shifted_ = 0;
};

}  // namespace rodeo::emulator
