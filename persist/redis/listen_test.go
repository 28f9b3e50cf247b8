package redis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// listener is the role of a process that runs a journal: see sqltest.Listener.
func listener(ctx context.Context, args []string) error {
	return sqltest.Listener(ctx, args[2], func(ctx context.Context) (persist.Journal, error) {
		return redis.Open(ctx, args[0], redis.Options{Prefix: args[1], MaxConns: 4, KeepKey: redis.KeepForever, AllowVolatile: true, CallTimeout: time.Minute})
	})
}

// TestWoken: what this process enqueues is sent by another one at once, also when the connection that listens was ended.
func TestWoken(t *testing.T) {
	t.Parallel()
	t.Run("server", func(t *testing.T) {
		t.Parallel()
		url := start(t, durable()...).url()
		opts, admin := own(t, url), connect(t, url)
		sqltest.Woken(t, open(t, url, opts), []string{url, opts.Prefix, "1h"}, nil, func() { endSubscription(t, admin) })
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		nodes := cluster(t, 3)
		opts := redis.Options{Prefix: sqltest.Name(), KeepKey: redis.KeepForever, AllowVolatile: true}
		sqltest.Woken(t, open(t, nodes[0].url(), opts), []string{nodes[1].url(), opts.Prefix, "1h"}, nil, nil)
	})
}

// endSubscription ends the one connection to a server that listens.
func endSubscription(t *testing.T, admin *goredis.Client) {
	t.Helper()
	clients, err := admin.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	ended := 0
	for client := range strings.Lines(clients) {
		id, _, _ := strings.Cut(strings.TrimPrefix(client, "id="), " ")
		if strings.Contains(client, " sub=1 ") {
			if err := admin.Do(t.Context(), "client", "kill", "id", id).Err(); err != nil {
				t.Fatal(err)
			}
			ended++
		}
	}
	if ended != 1 {
		t.Fatalf("%d connections listened, want one:\n%s", ended, clients)
	}
}

// TestListenKilled: a connection that the server has ended is replaced, which wakes, since something may have been missed.
func TestListenKilled(t *testing.T) {
	t.Parallel()
	url := start(t, durable()...).url() // on which nobody else listens
	opts, admin := own(t, url), connect(t, url)
	j, other := open(t, url, opts), open(t, url, opts)
	heard := sqltest.Listening(t, j)
	sqltest.HeardWake(t, heard, "the beginning")
	for range 3 {
		endSubscription(t, admin)
		sqltest.HeardWake(t, heard, "the end of the connection")
		other.Notify()
		sqltest.HeardWake(t, heard, "a notification on the new one")
	}
}

// TestListenPerJournal: each journal of a server has a channel of its own, also in another database of the server.
func TestListenPerJournal(t *testing.T) {
	t.Parallel()
	url := start(t, durable()...).url()
	zero, other := own(t, url), own(t, url)
	all := connect(t, url).PSubscribe(t.Context(), "*")
	t.Cleanup(func() { _ = all.Close() })
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if _, err := all.Receive(ctx); err != nil { // the answer to PSUBSCRIBE
		t.Fatal(err)
	}
	for _, j := range []struct {
		url, channel string
		opts         redis.Options
	}{
		{url, "{" + zero.Prefix + "}:wake:0", zero},
		{url, "{" + other.Prefix + "}:wake:0", other},
		{strings.TrimSuffix(url, "0") + "3", "{" + zero.Prefix + "}:wake:3", zero},
	} {
		open(t, j.url, j.opts).Notify()
		said, err := all.Receive(ctx)
		if message, ok := said.(*goredis.Message); err != nil || !ok || message.Channel != j.channel || message.Payload != "" {
			t.Errorf("%v, error %v; want an empty message on %s", said, err, j.channel)
		}
	}
}

// TestListenWithoutRight: a user who may use the journal's keys and not its channel hears nothing, which is said.
func TestListenWithoutRight(t *testing.T) {
	t.Parallel()
	s := start(t, durable()...)
	opts, admin := own(t, s.url()), connect(t, s.url())
	for _, step := range []struct{ channels, want string }{{"resetchannels", "NOPERM"}, {"&{" + opts.Prefix + "}:wake:*", ""}} {
		if err := admin.Do(t.Context(), "acl", "setuser", "worker", "reset", "on", ">hunter2", "~*", "+@all", step.channels).Err(); err != nil {
			t.Fatal(err)
		}
		j := open(t, strings.Replace(s.url(), ":hunter2", "worker:hunter2", 1), opts)
		switch err := sqltest.Heard(t, sqltest.Listening(t, j), "SUBSCRIBE as a user "+step.channels); {
		case step.want == "" && err != nil:
			t.Errorf("with %s: %v", step.channels, err)
		case step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want) || strings.Contains(err.Error(), "hunter2")):
			t.Errorf("with %s: %v, want %s", step.channels, err, step.want)
		}
	}
}
