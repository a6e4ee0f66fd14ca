// What the gRPC front end is measured against: a server on grpc++ that answers every
// ShouldRateLimit with OK, at once and without looking at it. One thread, one completion queue, as
// many calls waiting as there may be at a time.
//
//   bench_grpc PORT
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "envoy/service/ratelimit/v3/rls.grpc.pb.h"

namespace {

namespace rls = envoy::service::ratelimit::v3;
using Service = rls::RateLimitService::AsyncService;

constexpr int kCallsAtATime = 512;

// One call after the other.
class Call {
 public:
  Call(Service& service, grpc::ServerCompletionQueue& queue) : service_(service), queue_(queue) {
    Await();
  }

  void Proceed() {
    if (!answering_) {
      answering_ = true;
      rls::RateLimitResponse response;
      response.set_overall_code(rls::RateLimitResponse::OK);
      response.add_statuses()->set_code(rls::RateLimitResponse::OK);
      responder_->Finish(response, grpc::Status::OK, this);
    } else {
      Await();
    }
  }

 private:
  void Await() {
    answering_ = false;
    request_.Clear();
    context_ = std::make_unique<grpc::ServerContext>();
    responder_ =
        std::make_unique<grpc::ServerAsyncResponseWriter<rls::RateLimitResponse>>(context_.get());
    service_.RequestShouldRateLimit(context_.get(), &request_, responder_.get(), &queue_, &queue_,
                                    this);
  }

  Service& service_;
  grpc::ServerCompletionQueue& queue_;
  bool answering_ = false;
  rls::RateLimitRequest request_;
  std::unique_ptr<grpc::ServerContext> context_;
  std::unique_ptr<grpc::ServerAsyncResponseWriter<rls::RateLimitResponse>> responder_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: bench_grpc PORT\n");
    return EXIT_FAILURE;
  }
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:" + std::string(argv[1]), grpc::InsecureServerCredentials());
  builder.RegisterService(&service);
  const auto queue = builder.AddCompletionQueue();
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return EXIT_FAILURE;
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kCallsAtATime; ++i) {
    calls.push_back(std::make_unique<Call>(service, *queue));
  }
  void* tag = nullptr;
  bool ok = false;
  while (queue->Next(&tag, &ok)) {
    if (ok) static_cast<Call*>(tag)->Proceed();
  }
}
