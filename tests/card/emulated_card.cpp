// The kinds of emulated cards with which a rule is tested.
#include "emulated_card.h"

namespace rodeo::card {
namespace {

INSTANTIATE_TEST_SUITE_P(Kinds, EmulatedCard, testing::Values(kCru, kCrorc, kFelix),
                         [](const auto& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace rodeo::card
