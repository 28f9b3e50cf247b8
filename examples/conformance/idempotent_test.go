package example_test

import (
	"testing"

	"github.com/oncehttp/oncehttp/conformance/conformancetest"
	example "github.com/oncehttp/oncehttp/examples/conformance"
)

// The whole case book, against the middleware.
func TestIdempotent(t *testing.T) {
	t.Parallel()
	conformancetest.Run(t, conformancetest.Handler(example.Idempotent))
}
