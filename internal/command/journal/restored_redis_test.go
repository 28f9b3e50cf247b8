package journal_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/internal/command/commandtest"
	"github.com/oncehttp/oncehttp/internal/command/terminal"
)

// The two backups that Redis has: its append-only file, copied while it writes, and a snapshot, which is loaded by a
// server that does not append, and only then told to.
func TestRestoredRedis(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]func(*commandtest.RedisServer) backup{"append-only file": keptAOF, "snapshot": keptSnapshot} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := commandtest.OwnRedis(t, commandtest.Durable()...)
			testRestored(t, server.Journal(), keep(server))
		})
	}
}

// TestRestoredNothing: a snapshot in the folder of a server that appends is not loaded. So the journal is empty, and
// restored says so, beside the note that it was restored.
func TestRestoredNothing(t *testing.T) {
	t.Parallel()
	server := commandtest.OwnRedis(t, commandtest.Durable()...)
	commandtest.EnqueueOne(t, server.Journal(), commandtest.Refusing(t).URL, "k", "{}")
	taken := time.Now().UTC().Format(time.RFC3339Nano)
	if err := server.Client(t).Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	snapshot := contentOf(t, filepath.Join(server.Dir, "dump.rdb"))
	server.Kill()
	server.Fill(t, map[string]string{"dump.rdb": snapshot})
	server.Start(t)
	got := commandtest.Run(t, "journal", "restored", server.Journal(), "--taken", taken).Want(t, terminal.ExitOK)
	if got.Out != "held: 0 operations\n" || !strings.Contains(got.Err, "has no operation") || !strings.Contains(got.Err, "loads no dump.rdb") {
		t.Errorf("stdout %q, stderr %q; want a line that says what to look at", got.Out, got.Err)
	}
}

// keptAOF copies the append-only file of a server that runs.
func keptAOF(s *commandtest.RedisServer) backup {
	return func(t *testing.T, _ string) (restore func()) {
		files := map[string]string{}
		names, err := filepath.Glob(filepath.Join(s.Dir, "appendonlydir", "*"))
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			files[filepath.Join("appendonlydir", filepath.Base(name))] = contentOf(t, name)
		}
		return func() {
			s.Kill()
			s.Fill(t, files)
			s.Start(t)
			s.Client(t)
		}
	}
}

// keptSnapshot keeps what SAVE writes.
func keptSnapshot(s *commandtest.RedisServer) backup {
	return func(t *testing.T, _ string) (restore func()) {
		if err := s.Client(t).Save(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		snapshot := contentOf(t, filepath.Join(s.Dir, "dump.rdb"))
		return func() {
			s.Kill()
			s.Fill(t, map[string]string{"dump.rdb": snapshot})
			appends := s.Command
			s.Command = append(slices.Clone(appends), "--appendonly", "no")
			s.Start(t)
			client := s.Client(t)
			if err := client.ConfigSet(t.Context(), "appendonly", "yes").Err(); err != nil {
				t.Fatal(err)
			}
			for rewriting(t.Context(), client) {
				time.Sleep(5 * time.Millisecond)
			}
			s.Kill()
			s.Command = appends
			s.Start(t)
			s.Client(t)
		}
	}
}

// rewriting reports whether the server writes its first append-only file.
func rewriting(ctx context.Context, client *goredis.Client) bool {
	info := client.Info(ctx, "persistence").Val()
	return strings.Contains(info, "aof_rewrite_in_progress:1") || strings.Contains(info, "aof_rewrite_scheduled:1")
}

// contentOf is what is in a file.
func contentOf(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
