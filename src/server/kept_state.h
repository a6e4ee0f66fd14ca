// What a service does about its state when it starts and when it ends, and what it says about that.
#pragma once

#include <string>

#include <weir/engine.h>
#include <weir/policy.h>

#include "server/log.h"

namespace weir {

// Used by one thread at a time. The policy and the log must outlive it.
class KeptState {
 public:
  KeptState(const Policy& policy, const Log& log);

  // An engine that goes on with the snapshot of the policy, if there is one. One that is not to be
  // used is set aside; one that cannot be read stays where it is, since there may be nothing wrong
  // with it. Then the engine begins with nothing. The error is Engine::Make's.
  [[nodiscard]] Result<Engine> Resume(const EngineOptions& options);

  // What another policy says about the next snapshot.
  void Apply(const Policy& policy);

  // Leaves a snapshot if the policy wants one, but not in the place of one that was never read:
  // that is set aside. When nothing else uses the engine any more. False if it could not be
  // written.
  [[nodiscard]] bool Keep(Engine& engine);

 private:
  void CheckRoom();
  void SetAside();

  const Policy& policy_;
  const Log& log_;
  std::string path_;        // Empty: the policy wants none.
  std::string read_;        // Where all that was there has been read.
  bool is_unread_ = false;  // There was a snapshot, and what is in it nobody knows.
};

}  // namespace weir
