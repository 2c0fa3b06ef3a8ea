#include "base/error.h"

namespace rodeo {

std::string Error::message() const {
  std::string text = "error[" + code + "]: ";
  if (!where.empty()) text += where + ": ";
  text += what;
  if (!next.empty()) text += "\n  " + next;
  return text;
}

}  // namespace rodeo
