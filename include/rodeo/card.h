// Readout cards for programs that use the library: find them, read and write registers, take data by DMA. Real cards and emulated ones alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace rodeo {

/// What the functions below throw: what went wrong and what to do, in one sentence each. `code` is "card.timeout" and so on (`rodeo explain`).
class CardError : public std::runtime_error {
 public:
  CardError(std::string code, const std::string& message) : std::runtime_error(message), code_(std::move(code)) {}
  const std::string& code() const noexcept { return code_; }

 private:
  std::string code_;
};

/// One PCI function of a card.
struct CardInfo {
  unsigned sequence = 0;                  ///< "#0", "#1", ...
  std::string type;                       ///< "CRU", "C-RORC", "FELIX", "unknown"
  std::string address;                    ///< "0000:3b:00.0"
  std::optional<std::uint32_t> serial;    ///< nothing: it cannot be read
  std::optional<unsigned> endpoint;       ///< 0 or 1
  std::optional<std::uint32_t> firmware;  ///< hash
  std::string firmware_name;              ///< "v3.19.4", or the hash if it is not known
  int numa_node = -1;                     ///< -1: not known
  std::string problem;                    ///< why the card cannot be used; empty: it can
};

/// All cards of this host, real and emulated. Never throws for a card that does not answer: that is a row with a problem.
std::vector<CardInfo> list_cards();

class CardDma;
class CardHandle;

namespace card {
class Card;
/// The room's own class behind a handle; not for programs that use the library.
Card& inside_of(CardHandle& handle);
}  // namespace card

/// A card that is open. Any thread; any number of processes at once. No call waits without a limit. A forked child opens the card itself: with its copy
/// of a handle every access throws card.forked.
class CardHandle {
 public:
  /// By PCI address ("3b:00.0"), place in the list ("#2") or serial number and endpoint ("0233:1").
  static CardHandle open(std::string_view id);
  CardHandle(CardHandle&&) noexcept;
  CardHandle& operator=(CardHandle&&) noexcept;
  ~CardHandle();

  const CardInfo& info() const;

  /// 32 bits at a byte offset of a BAR; an offset outside or not aligned throws.
  std::uint32_t read(unsigned bar, std::uint64_t offset);
  /// Throws card.read_only if a register that is declared as one that can only be read stands there, unless `force`; so do the others that write.
  void write(unsigned bar, std::uint64_t offset, std::uint32_t value, bool force = false);
  /// Changes `width` bits from bit `low` up, while no other process does the same; returns what was written.
  std::uint32_t modify(unsigned bar, std::uint64_t offset, unsigned low, unsigned width, std::uint32_t value,
                       bool force = false);
  /// A register by its declared name, "superpages_done[3]" for one of a row; for a C-RORC the index is the channel. A value that does not fit into
  /// the register throws card.bad_access.
  std::uint64_t read(std::string_view name);
  void write(std::string_view name, std::uint64_t value, bool force = false);

 private:
  friend class CardDma;
  friend card::Card& card::inside_of(CardHandle& handle);
  struct Inside;
  explicit CardHandle(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

/// What a CardDma is opened with.
struct CardDmaOptions {
  unsigned channel = 0;
  std::size_t buffer_bytes = std::size_t{256} << 20;  ///< shared memory on the largest pages there are
  std::uint32_t superpage_bytes = 1U << 20;           ///< a multiple of 32 KiB
  std::string source = "internal";                    ///< "fee", "ddg", "internal", "siu", "diu"
  bool check_firmware = true;
  /// Where the thread that calls next() runs, from the first call to stop(), unless it is pinned already: "card" (the CPUs of the card's NUMA node,
  /// free on a machine of one node), "off", or a node's number.
  std::string numa = "card";
};

/// A piece of what the card wrote, in order.
struct CardSpan {
  std::span<const std::byte> bytes;
  std::uint64_t superpage = 0;  ///< number of its superpage since the start; never falls
  int link = -1;                ///< -1: of several links
  bool last = false;            ///< the superpage ends here
};

/// The one owner of a DMA channel, from open() to close() or its end, whichever is first. One thread at a time: who shares it among threads serialises the
/// calls. The card must outlive it. The destructor stops the card and throws nothing, whatever has become of the card. In a forked child the copy does
/// nothing to the card: its calls throw card.forked, but close() and the destructor, which let go of what the child has of it; what is mapped can be read.
class CardDma {
 public:
  /// Throws card.locked if the channel has an owner, card.bad_dma for a channel, a source, or sizes of buffer and superpages that the card does not take.
  static CardDma open(CardHandle& card, const CardDmaOptions& options = {});
  CardDma(CardDma&&) noexcept;
  CardDma& operator=(CardDma&&) noexcept;
  ~CardDma();

  /// Ignored while it runs. Throws card.not_drained if next() has not been called until it gave nothing after a stop(), card.closed after close().
  void start();
  /// The next span, or nothing if there is none now; never waits. Throws if the card broke the rules (card.misbehaved) or is gone. Nothing after close().
  std::optional<CardSpan> next();
  /// Gives all superpages with lower numbers back to the card: their memory is no longer the caller's.
  void release_before(std::uint64_t superpage);
  /// What the card has filled can still be read with next().
  void stop();
  /// Stops, and gives the channel away: somebody else may open it at once, this process as well. What next() has not given out is lost; spans that it
  /// has stay readable. Done also where it throws because the card did not stop. Ignored the second time.
  void close();

  /// Between start() and stop(): more may come.
  bool running() const;
  /// Where the thread that calls next() runs: "on NUMA node 1 (CPUs 8-15)", or "free: ..." and why.
  const std::string& place() const;
  /// The buffer. As long as a copy of this lives the bytes of spans stay mapped, also after close() and the end of the CardDma; a superpage that was
  /// given back may change under its reader until then.
  std::shared_ptr<const void> memory() const;

 private:
  struct Inside;
  explicit CardDma(std::unique_ptr<Inside> inside);
  std::unique_ptr<Inside> inside_;
};

}  // namespace rodeo
