package main

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// The two backups that Redis has: its append-only file, copied while it writes, and a snapshot, which is loaded by a
// server that does not append, and only then told to.
func TestRestoredRedis(t *testing.T) {
	t.Parallel()
	for name, keep := range map[string]func(*redisServer) backup{"append-only file": keptAOF, "snapshot": keptSnapshot} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := ownRedis(t, durable()...)
			testRestored(t, server.journal(), keep(server))
		})
	}
}

// TestRestoredNothing: a snapshot in the folder of a server that appends is not loaded. So the journal is empty, and
// restored says so, instead of holding nothing as if all were well.
func TestRestoredNothing(t *testing.T) {
	t.Parallel()
	server := ownRedis(t, durable()...)
	enqueueOne(t, server.journal(), refusing(t).url, "k", "{}")
	taken := time.Now().UTC().Format(time.RFC3339Nano)
	if err := server.client(t).Save(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	snapshot := contentOf(t, filepath.Join(server.dir, "dump.rdb"))
	server.kill()
	server.fill(t, map[string]string{"dump.rdb": snapshot})
	server.start(t)
	got := run(t, "journal", "restored", server.journal(), "--taken", taken).want(t, exitUsage)
	if got.out != "" || strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "has no operation") || !strings.Contains(got.err, "loads no dump.rdb") {
		t.Errorf("stdout %q, stderr %q; want a line that says what to look at", got.out, got.err)
	}
}

// journal is the URL of the journal on the server.
func (s *redisServer) journal() string { return "redis://" + s.address + "/0?keep_key=forever" }

// client is a client beside the journal.
func (s *redisServer) client(t *testing.T) *goredis.Client {
	t.Helper()
	client := goredis.NewClient(&goredis.Options{Addr: s.address})
	t.Cleanup(func() { _ = client.Close() })
	for start := time.Now(); client.Ping(t.Context()).Err() != nil; time.Sleep(5 * time.Millisecond) { // it loads
		if time.Since(start) > 20*time.Second {
			t.Fatal("redis-server does not answer")
		}
	}
	return client
}

// fill empties the server's folder, and writes these files there.
func (s *redisServer) fill(t *testing.T, files map[string]string) {
	t.Helper()
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		name = filepath.Join(s.dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// keptAOF copies the append-only file of a server that runs.
func keptAOF(s *redisServer) backup {
	return func(t *testing.T, _ string) (restore func()) {
		files := map[string]string{}
		names, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*"))
		if err != nil || len(names) == 0 {
			t.Fatal(names, err)
		}
		for _, name := range names {
			files[filepath.Join("appendonlydir", filepath.Base(name))] = contentOf(t, name)
		}
		return func() {
			s.kill()
			s.fill(t, files)
			s.start(t)
			s.client(t)
		}
	}
}

// keptSnapshot keeps what SAVE writes.
func keptSnapshot(s *redisServer) backup {
	return func(t *testing.T, _ string) (restore func()) {
		if err := s.client(t).Save(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		snapshot := contentOf(t, filepath.Join(s.dir, "dump.rdb"))
		return func() {
			s.kill()
			s.fill(t, map[string]string{"dump.rdb": snapshot})
			appends := s.command
			s.command = append(slices.Clone(appends), "--appendonly", "no")
			s.start(t)
			client := s.client(t)
			if err := client.ConfigSet(t.Context(), "appendonly", "yes").Err(); err != nil {
				t.Fatal(err)
			}
			for rewriting(t.Context(), client) {
				time.Sleep(5 * time.Millisecond)
			}
			s.kill()
			s.command = appends
			s.start(t)
			s.client(t)
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
