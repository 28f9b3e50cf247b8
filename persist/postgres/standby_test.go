package postgres_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/oncehttp/oncehttp/persist/postgres"
)

// A server that takes no writes, as a standby, is refused.
func TestStandby(t *testing.T) {
	t.Parallel()
	db := admin(t)
	opts := migrated(t, db)
	readOnly := server(t) + "?default_transaction_read_only=on"
	_, err := postgres.Open(t.Context(), readOnly, opts)
	if err == nil || !strings.Contains(err.Error(), "read only") || strings.Contains(err.Error(), "\n") {
		t.Errorf("Open where nothing can be written: %v, want one line that says so", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := postgres.Migrate(ctx, readOnly, opts); err == nil || !strings.Contains(err.Error(), "read") {
		t.Errorf("Migrate where nothing can be written: %v", err)
	}
}
