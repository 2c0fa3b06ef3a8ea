#include "card/pci/express_link.h"

#include <linux/pci_regs.h>

#include <array>

namespace rodeo::card::pci {
namespace {

template <typename Word>
Result<Word> word_at(Function& function, std::uint64_t offset) {
  Word word = 0;
  RODEO_TRY(function.read(kConfigurationRegion, offset, std::as_writable_bytes(std::span(&word, 1))));
  return word;
}

/// The offset of the capability; 0: the function has none. The limit ends a circular list.
Result<std::uint8_t> find_express(Function& function) {
  constexpr unsigned kMostCapabilities = (256 - PCI_STD_HEADER_SIZEOF) / 4;
  const auto status = RODEO_TRY(word_at<std::uint16_t>(function, PCI_STATUS));
  if ((status & PCI_STATUS_CAP_LIST) == 0) return std::uint8_t{0};
  std::uint8_t at = RODEO_TRY(word_at<std::uint8_t>(function, PCI_CAPABILITY_LIST));
  for (unsigned i = 0; i < kMostCapabilities; ++i) {
    at &= 0xfc;
    if (at < PCI_STD_HEADER_SIZEOF) break;
    const auto id = RODEO_TRY(word_at<std::uint8_t>(function, at + PCI_CAP_LIST_ID));
    if (id == PCI_CAP_ID_EXP) return at;
    at = RODEO_TRY(word_at<std::uint8_t>(function, at + PCI_CAP_LIST_NEXT));
  }
  return std::uint8_t{0};
}

/// 128 bytes doubled `code` times; codes 6 and 7 are reserved.
unsigned bytes_of(unsigned code) { return code <= 5 ? kSmallestPayloadBytes << code : 0; }

double speed_of(unsigned code) {
  constexpr std::array<double, 7> kSpeeds{0, 2.5, 5, 8, 16, 32, 64};
  return code < kSpeeds.size() ? kSpeeds[code] : 0;
}

}  // namespace

Result<std::optional<ExpressLink>> read_express_link(Function& function) {
  const auto info = RODEO_TRY(function.region(kConfigurationRegion));
  if (info.bytes < 256) return std::nullopt;
  const auto vendor = RODEO_TRY(word_at<std::uint16_t>(function, PCI_VENDOR_ID));
  if (vendor == 0xffff)
    return std::unexpected(Error{"card.all_ones", "its configuration space reads as all ones: the card does not answer",
                                 function.address().text(), "look at its power and its slot"});
  const std::uint8_t at = RODEO_TRY(find_express(function));
  if (at == 0) return std::nullopt;
  const auto capability = RODEO_TRY(word_at<std::uint32_t>(function, at + PCI_EXP_DEVCAP));
  const auto control = RODEO_TRY(word_at<std::uint16_t>(function, at + PCI_EXP_DEVCTL));
  const auto link = RODEO_TRY(word_at<std::uint32_t>(function, at + PCI_EXP_LNKCAP));
  const auto trained = RODEO_TRY(word_at<std::uint16_t>(function, at + PCI_EXP_LNKSTA));
  return ExpressLink{.payload_bytes = bytes_of((control & PCI_EXP_DEVCTL_PAYLOAD) >> 5),
                     .longest_payload_bytes = bytes_of(capability & PCI_EXP_DEVCAP_PAYLOAD),
                     .read_request_bytes = bytes_of((control & PCI_EXP_DEVCTL_READRQ) >> 12),
                     .speed = speed_of(trained & PCI_EXP_LNKSTA_CLS),
                     .fastest_speed = speed_of(link & PCI_EXP_LNKCAP_SLS),
                     .lanes = static_cast<unsigned>(trained & PCI_EXP_LNKSTA_NLW) >> PCI_EXP_LNKSTA_NLW_SHIFT,
                     .most_lanes = (link & PCI_EXP_LNKCAP_MLW) >> 4};
}

}  // namespace rodeo::card::pci
