#include "base/nearest.h"

#include <algorithm>
#include <cctype>

namespace rodeo::base {

namespace {

char fold(char c) { return c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = fold(a[i - 1]) == fold(b[j - 1]);
      now[j] = std::min({last[j] + 1, now[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      if (i > 1 && j > 1 && fold(a[i - 1]) == fold(b[j - 2]) && fold(a[i - 2]) == fold(b[j - 1])) {
        now[j] = std::min(now[j], before[j - 2] + 1);
      }
    }
    std::swap(before, last);
    std::swap(last, now);
  }
  return last[b.size()];
}

std::vector<std::string> nearest(std::string_view name, std::span<const std::string> known, std::size_t most) {
  struct Candidate {
    std::size_t distance;
    std::string name;
  };
  std::vector<Candidate> candidates;
  for (const std::string& other : known) {
    std::size_t distance = edit_distance(name, other);
    // "gen" for "generator", "time" for "timeout": a prefix is as good a guess as a typing error.
    const bool begins = name.size() >= 3 && other.starts_with(name);
    if (begins) distance = std::min<std::size_t>(distance, 1);
    const std::size_t allowed = name.size() <= 3 ? 1 : name.size() <= 6 ? 2 : 3;
    if (distance <= allowed) candidates.push_back({distance, other});
  }
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
  std::vector<std::string> names;
  for (const Candidate& candidate : candidates) {
    if (names.size() == most) break;
    if (std::find(names.begin(), names.end(), candidate.name) == names.end()) names.push_back(candidate.name);
  }
  return names;
}

std::string did_you_mean(std::string_view name, std::span<const std::string> known) {
  const std::vector<std::string> names = nearest(name, known);
  if (names.empty()) return {};
  std::string text = "did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += "`" + names[i] + "`";
  }
  return text + "?";
}

}  // namespace rodeo::base
