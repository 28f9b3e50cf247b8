package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	goredis "github.com/redis/go-redis/v9"
)

// address is the place of a journal.
type address struct {
	options *goredis.Options // of the first node
	nodes   []string         // every host:port in the URL

	clustered bool // it is known to be a cluster
	slots     func(context.Context) ([]goredis.ClusterSlot, error)
}

// parse reads the URL. Its parameter addr, any number of times, names further nodes of a cluster; the client library does not know it, and does not see it.
// Error: ErrOptions; it does not quote the URL.
func (o Options) parse(rawURL string) (address, error) {
	broken := fmt.Errorf("%w: the URL cannot be read (it is not shown, as it may hold a password); want redis://user:password@host:port/0", ErrOptions)
	u, err := url.Parse(rawURL)
	if err != nil {
		return address{}, broken
	}
	query := u.Query()
	more := query["addr"]
	query.Del("addr")
	u.RawQuery = query.Encode()
	options, err := goredis.ParseURL(u.String())
	if err != nil {
		return address{}, broken
	}
	o.own(options)
	return address{options: options, nodes: append([]string{options.Addr}, more...)}, nil
}

// own sets the options that the journal decides itself: time limits, the number of connections, and no repeats by the client, since the journal repeats its
// writes. One try gets a part of CallTimeout, so that a call has time for a few. A dialer and an OnConnect that the program has set are called as well.
func (o Options) own(options *goredis.Options) {
	try := o.CallTimeout / triesInLimit
	options.Protocol, options.DisableIdentity = 2, true // no notifications, and nothing unknown to old servers
	options.MaxRetries = -1                             // settle repeats, and knows the write
	options.DialerRetries = 1
	options.DialTimeout, options.ReadTimeout, options.WriteTimeout, options.PoolTimeout = try, try, try, try
	options.ContextTimeoutEnabled = true
	options.PoolSize, options.MaxActiveConns, options.MaxIdleConns = o.MaxConns, o.MaxConns, o.MaxConns
	options.OnConnect, options.Dialer = o.greetAfter(options.OnConnect), dialer(options)
}

// greetAfter returns the function that is called with each new connection: first the program's own, which may be nil, then greet, which checks the
// server.
func (o Options) greetAfter(first func(context.Context, *goredis.Conn) error) func(context.Context, *goredis.Conn) error {
	if first == nil {
		return o.greet
	}
	return func(ctx context.Context, conn *goredis.Conn) error {
		if err := first(ctx, conn); err != nil {
			return err
		}
		return o.greet(ctx, conn)
	}
}

// name returns the journal's name in errors. It holds no password.
func (a address) name(prefix string) string {
	return fmt.Sprintf("redis %s/%d prefix %s", strings.Join(a.nodes, ","), a.options.DB, prefix)
}

// provided reports whether a function of the program provides the credentials of each connection: these can change, and a refused one is tried again.
func (a address) provided() bool {
	o := a.options
	return o.CredentialsProvider != nil || o.CredentialsProviderContext != nil || o.StreamingCredentialsProvider != nil
}

// client makes the client: of one server, or of its cluster if it is part of one (its section "cluster" says so). It asks the nodes in order, until one
// answers.
func (a address) client(ctx context.Context) (goredis.UniversalClient, error) {
	if a.clustered {
		return goredis.NewClusterClient(a.cluster()), nil
	}
	var all error
	for _, node := range a.nodes {
		one := *a.options
		one.Addr = node
		client := goredis.NewClient(&one)
		info, err := client.Info(ctx, "cluster").Result()
		if err == nil && !strings.Contains(info, "cluster_enabled:1") {
			return client, nil
		}
		_ = client.Close()
		if err == nil {
			return goredis.NewClusterClient(a.cluster()), nil
		}
		all = errors.Join(all, err)
	}
	return nil, all
}

// cluster returns the options of the address for the client of a Redis Cluster. It repeats nothing by itself (-1): the journal repeats its calls, and knows
// which writes may be.
func (a address) cluster() *goredis.ClusterOptions {
	o := a.options
	return &goredis.ClusterOptions{
		Addrs: a.nodes, Username: o.Username, Password: o.Password, TLSConfig: o.TLSConfig, ClientName: o.ClientName, ClusterSlots: a.slots,
		CredentialsProvider: o.CredentialsProvider, CredentialsProviderContext: o.CredentialsProviderContext, StreamingCredentialsProvider: o.StreamingCredentialsProvider,
		ConnMaxIdleTime: o.ConnMaxIdleTime, ConnMaxLifetime: o.ConnMaxLifetime,
		Protocol: o.Protocol, DisableIdentity: true, DisableRoutingPolicies: true,
		MaxRetries: -1, MaxRedirects: -1, DialerRetries: 1, // the client of a cluster also repeats on a redirection
		DialTimeout: o.DialTimeout, ReadTimeout: o.ReadTimeout, WriteTimeout: o.WriteTimeout, PoolTimeout: o.PoolTimeout,
		ContextTimeoutEnabled: true, PoolSize: o.PoolSize, MaxActiveConns: o.MaxActiveConns, MaxIdleConns: o.MaxIdleConns,
		OnConnect: o.OnConnect, Dialer: o.Dialer,
	}
}

// durable lists the required settings of the server.
var durable = []struct{ name, want string }{
	{"appendonly", "yes"},
	{"appendfsync", "always"},
	{"no-appendfsync-on-rewrite", "no"},
	{"maxmemory-policy", "noeviction"},
}

// greet checks the server's settings before a new connection is used: an answered write must be on the disk (durable lists the settings for that). So it
// notices a server restarted with other settings, and a promoted replica. A journal opened for reading writes nothing, and needs no check. It also notes the
// largest value that the server takes (o.most). Error: ErrVolatile, or that of the connection.
func (o Options) greet(ctx context.Context, conn *goredis.Conn) error {
	if o.ReadOnly {
		return nil
	}
	asked := make([]*goredis.MapStringStringCmd, len(durable))
	var bulk *goredis.MapStringStringCmd
	_, err := conn.Pipelined(ctx, func(p goredis.Pipeliner) error {
		for i, setting := range durable {
			asked[i] = p.ConfigGet(ctx, setting.name)
		}
		bulk = p.ConfigGet(ctx, bulkName)
		return nil
	})
	var answered goredis.Error
	if err != nil && !errors.As(err, &answered) { // the connection has failed; a refused command is looked at below
		return err
	}
	if o.most != nil {
		o.most.learn(bulk.Val()[bulkName])
	}
	if o.AllowVolatile {
		return nil
	}
	for i, setting := range durable {
		switch is, err := asked[i].Result(); {
		case err != nil:
			return volatile("it does not tell its setting %s, which has to be %q: %w", setting.name, setting.want, err)
		case is[setting.name] != setting.want:
			return volatile("its setting %s is %q, which has to be %q", setting.name, is[setting.name], setting.want)
		}
	}
	return nil
}

// volatile returns ErrVolatile with the reason. It has two causes, since the client unwraps an error with a single one.
func volatile(format string, args ...any) error {
	return fmt.Errorf("%w: %w; change it, or set AllowVolatile", ErrVolatile, fmt.Errorf(format, args...))
}

// refusals begin the answers of a server to a request without any effect.
var (
	// refused: a second try would get the same answer.
	refused = []string{"OOM", "MISCONF", "NOREPLICAS", "NOAUTH", "WRONGPASS", "CROSSSLOT", "DENIED"}
	// passing: a server starts, a cluster moves slots or elects a master, or a script runs for too long.
	passing = []string{"LOADING", "BUSY", "MOVED", "ASK", "TRYAGAIN", "CLUSTERDOWN", "MASTERDOWN", "READONLY", "NOSCRIPT"}
)

// code returns the first word of a server's error, such as "NOPERM", without a colon behind it: it names the kind of error.
func code(err goredis.Error) string {
	word, _, _ := strings.Cut(err.Error(), " ")
	return strings.TrimSuffix(word, ":")
}

// isRefusal reports whether the server's error begins with one of these codes.
func isRefusal(err goredis.Error, codes []string) bool { return slices.Contains(codes, code(err)) }
