//go:build tools

// Names the programs of this module, so that go.sum covers what they need.
package tools

import (
	_ "github.com/fullstorydev/grpcurl/cmd/grpcurl"
	_ "github.com/grpc-ecosystem/grpc-health-probe"
)
