package redis_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/oncehttp/oncehttp/internal/testrun"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/internal/sqltest"
	"github.com/oncehttp/oncehttp/persist/persisttest"
	"github.com/oncehttp/oncehttp/persist/redis"
)

// retrying is a client of the program's own that repeats what fails.
func retrying(t testing.TB, url string, change func(*goredis.Options)) *goredis.Client {
	t.Helper()
	opts, err := goredis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	opts.MaxRetries, opts.PoolSize = 3, 2
	if change != nil {
		change(opts)
	}
	client := goredis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestOpenClientSuite runs some cases of the suite on a client that repeats.
func TestOpenClientSuite(t *testing.T) {
	t.Parallel()
	url := durableURL(t)
	client := retrying(t, url, nil)
	h := harness(t, url)
	h.Cases = testrun.Some(persisttest.Names(), 4)
	h.New = func(string) (func() (persist.Journal, error), error) {
		opts := own(t, url)
		return func() (persist.Journal, error) { return redis.OpenClient(context.Background(), client, opts) }, nil
	}
	persisttest.Run(t, h)
}

// TestOpenClientIsTheProgramsOwn: the client is used for nothing, goes on after Close, and its dialer and OnConnect are called.
func TestOpenClientIsTheProgramsOwn(t *testing.T) {
	t.Parallel()
	url := durableURL(t)
	var dialed, greeted atomic.Int32
	client := retrying(t, url, func(o *goredis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			dialed.Add(1)
			return new(net.Dialer).DialContext(ctx, network, addr)
		}
		o.OnConnect = func(context.Context, *goredis.Conn) error {
			greeted.Add(1)
			return nil
		}
	})
	j, err := redis.OpenClient(t.Context(), client, own(t, url))
	if err != nil {
		t.Fatal(err)
	}
	if _, created, err := j.Begin(t.Context(), sqltest.Record("a", "k")); err != nil || !created {
		t.Fatalf("Begin: %t, %v", created, err)
	}
	if n := client.PoolStats().TotalConns; n != 0 || dialed.Load() == 0 || greeted.Load() != dialed.Load() {
		t.Errorf("%d connections of the client, %d dialed, %d greeted", n, dialed.Load(), greeted.Load())
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Errorf("after Close: %v", err)
	}
}

// TestOpenClientRefused: what is no client of one server or of a cluster is refused.
func TestOpenClientRefused(t *testing.T) {
	t.Parallel()
	opts := redis.Options{KeepKey: redis.KeepForever}
	ring := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	for name, client := range map[string]goredis.UniversalClient{"nil": nil, "Client": (*goredis.Client)(nil), "ClusterClient": (*goredis.ClusterClient)(nil), "Ring": ring} {
		if _, err := redis.OpenClient(t.Context(), client, opts); !errors.Is(err, redis.ErrOptions) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestOpenClientRotated rotates the password of the journal's user while a client works. The provider has the new password only after the server.
func TestOpenClientRotated(t *testing.T) {
	t.Parallel()
	url := start(t, durable()...).url()
	admin := connect(t, url)
	var password atomic.Value
	var asked atomic.Int32  // how often, for the password
	rotate := func(n int) { // ends the sessions while only the server has the new password
		t.Helper()
		next := fmt.Sprint("p", n)
		if err := admin.Do(t.Context(), "ACL", "SETUSER", "shop", "reset", "on", ">"+next, "~*", "&*", "+@all").Err(); err != nil {
			t.Fatal(err)
		}
		if err := admin.Do(t.Context(), "CLIENT", "KILL", "USER", "shop").Err(); err != nil {
			t.Fatal(err)
		}
		for start, before := time.Now(), asked.Load(); n >= 0 && asked.Load() == before && time.Since(start) < 20*time.Second; {
			time.Sleep(time.Millisecond)
		}
		password.Store(next)
	}
	rotate(-1)
	client := retrying(t, url, func(o *goredis.Options) {
		o.CredentialsProviderContext = func(context.Context) (string, string, error) {
			defer asked.Add(1)
			return "shop", password.Load().(string), nil
		}
	})
	j, err := redis.OpenClient(t.Context(), client, redis.Options{KeepKey: redis.KeepForever, MaxConns: 4})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	sqltest.Rotated(t, j, rotate)
}

// TestOpenClientOfACluster: the journal neither repeats nor reads from replicas, though the client does.
func TestOpenClientOfACluster(t *testing.T) {
	t.Parallel()
	client := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}, MaxRetries: 3, MaxRedirects: 5, ReadOnly: true, RouteByLatency: true, Username: "shop", ClientName: "orders"})
	t.Cleanup(func() { _ = client.Close() })
	o := redis.ClusterOptionsFor(client)
	if o.MaxRetries != -1 || o.MaxRedirects != -1 || o.ReadOnly || o.RouteByLatency || o.RouteRandomly {
		t.Errorf("the journal's client repeats or reads from replicas: %+v", o)
	}
	if o.Username != "shop" || o.ClientName != "orders" || o.Addrs[0] != "127.0.0.1:1" {
		t.Errorf("the journal's client is another one: %+v", o)
	}
}
