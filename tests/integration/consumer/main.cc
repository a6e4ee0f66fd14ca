// The smallest program a user could write: two a minute, so the third is denied.
#include <weir/weir.h>

int main() {
  auto limiter = weir::Limiter::Make("2/min");
  return limiter && limiter->Check("a").allowed && limiter->Check("a").allowed &&
                 !limiter->Check("a").allowed
             ? 0
             : 1;
}
