package zero_test

import (
	"github.com/oncehttp/oncehttp"
	"github.com/oncehttp/oncehttp/conformance"
	"github.com/oncehttp/oncehttp/conformance/conformancetest"
	"github.com/oncehttp/oncehttp/mockserver"
	"github.com/oncehttp/oncehttp/mockserver/bugs"
	"github.com/oncehttp/oncehttp/mockserver/referee"
	"github.com/oncehttp/oncehttp/persist"
	"github.com/oncehttp/oncehttp/persist/bolt"
	"github.com/oncehttp/oncehttp/persist/memory"
	"github.com/oncehttp/oncehttp/persist/mysql"
	"github.com/oncehttp/oncehttp/persist/persisttest"
	"github.com/oncehttp/oncehttp/persist/postgres"
	"github.com/oncehttp/oncehttp/persist/redis"
	"github.com/oncehttp/oncehttp/persist/seal"
	"github.com/oncehttp/oncehttp/profile"
	"github.com/oncehttp/oncehttp/reconcile"
	"github.com/oncehttp/oncehttp/sign"
)

// functions are the exported functions of the public packages.
func functions() map[string]any {
	return map[string]any{
		"bolt.Open":                   bolt.Open,
		"bugs.All":                    bugs.All,
		"bugs.Find":                   bugs.Find,
		"conformance.Cases":           conformance.Cases,
		"conformance.Defaults":        conformance.Defaults,
		"conformance.Find":            conformance.Find,
		"conformance.IDs":             conformance.IDs,
		"conformance.Run":             conformance.Run,
		"conformance.RunHandler":      conformance.RunHandler,
		"conformance.RunOrigin":       conformance.RunOrigin,
		"conformance.Select":          conformance.Select,
		"conformancetest.Run":         conformancetest.Run,
		"memory.New":                  memory.New,
		"mockserver.New":              mockserver.New,
		"mockserver.ParseFault":       mockserver.ParseFault,
		"mockserver.ParseFaults":      mockserver.ParseFaults,
		"mysql.Begin":                 mysql.Begin,
		"mysql.Migrate":               mysql.Migrate,
		"mysql.Open":                  mysql.Open,
		"mysql.Print":                 mysql.Print,
		"oncehttp.AccountFromContext": oncehttp.AccountFromContext,
		"oncehttp.AsSeen":             oncehttp.AsSeen,
		"oncehttp.ContextWithAccount": oncehttp.ContextWithAccount,
		"oncehttp.ContextWithKey":     oncehttp.ContextWithKey,
		"oncehttp.CredentialHash":     oncehttp.CredentialHash,
		"oncehttp.InheritKey":         oncehttp.InheritKey,
		"oncehttp.InheritKeyBy":       oncehttp.InheritKeyBy,
		"oncehttp.InheritedKey":       oncehttp.InheritedKey,
		"oncehttp.KeyFromJSON":        oncehttp.KeyFromJSON,
		"oncehttp.New":                oncehttp.New,
		"oncehttp.NewScope":           oncehttp.NewScope,
		"oncehttp.OfAccount":          oncehttp.OfAccount,
		"oncehttp.Open":               oncehttp.Open,
		"oncehttp.OutcomeOf":          oncehttp.OutcomeOf,
		"oncehttp.RandomKey":          oncehttp.RandomKey,
		"oncehttp.ResultOf":           oncehttp.ResultOf,
		"oncehttp.TimeBucket":         oncehttp.TimeBucket,
		"oncehttp.Undo":               oncehttp.Undo,
		"oncehttp.WithNote":           oncehttp.WithNote,
		"persist.Account":             persist.Account,
		"persist.As":                  persist.As[persist.Claimer],
		"persist.CheckFact":           persist.CheckFact,
		"persist.FactNames":           persist.FactNames,
		"persist.CompareOwners":       persist.CompareOwners,
		"persist.OfOneRecord":         persist.OfOneRecord,
		"persist.ParseNeeds":          persist.ParseNeeds,
		"persist.SplitAccount":        persist.SplitAccount,
		"persisttest.Check":           persisttest.Check,
		"persisttest.Names":           persisttest.Names,
		"persisttest.Run":             persisttest.Run,
		"postgres.Begin":              postgres.Begin,
		"postgres.BeginSQL":           postgres.BeginSQL,
		"postgres.Migrate":            postgres.Migrate,
		"postgres.Open":               postgres.Open,
		"postgres.Print":              postgres.Print,
		"profile.ByName":              profile.ByName,
		"profile.Draft07":             profile.Draft07,
		"profile.Draft07Quoted":       profile.Draft07Quoted,
		"profile.GoCardless":          profile.GoCardless,
		"profile.Load":                profile.Load,
		"profile.LoadFile":            profile.LoadFile,
		"profile.Names":               profile.Names,
		"profile.None":                profile.None,
		"profile.StripeV1":            profile.StripeV1,
		"redis.Open":                  redis.Open,
		"referee.DefaultScript":       referee.DefaultScript,
		"referee.New":                 referee.New,
		"referee.ParseScript":         referee.ParseScript,
		"referee.Rules":               referee.Rules,
		"seal.New":                    seal.New,
		"seal.ReadFile":               seal.ReadFile,
		"sign.HMAC":                   sign.HMAC,
		"sign.HMACFunc":               sign.HMACFunc,
		"sign.PrivateKey":             sign.PrivateKey,
		"sign.PublicKey":              sign.PublicKey,
		"sign.WeChatPay":              sign.WeChatPay,
	}
}

// types are the exported types that have methods.
func types() []any {
	return []any{
		new(bolt.Journal),
		new(bugs.Bug),
		new(conformance.Case),
		new(conformance.Options),
		new(conformance.Report),
		new(conformance.UsageError),
		new(memory.Journal),
		new(mockserver.Config),
		new(mockserver.Fault),
		new(mockserver.Kind),
		new(mockserver.Ledger),
		new(mockserver.Mix),
		new(mockserver.Pipe),
		new(mockserver.Reply),
		new(mockserver.Send),
		new(mockserver.Server),
		new(mockserver.Violation),
		new(mysql.Journal),
		new(mysql.Options),
		new(oncehttp.Client),
		new(oncehttp.Error),
		new(oncehttp.Key),
		new(oncehttp.Outcome),
		new(oncehttp.Scope),
		new(oncehttp.Source),
		new(persist.Answer),
		new(persist.Attachment),
		new(persist.Limits),
		new(persist.Needs),
		new(persist.Query),
		new(persist.Record),
		new(persist.State),
		new(persist.UnreadError),
		new(postgres.Journal),
		new(postgres.Options),
		new(profile.BodyRule),
		new(profile.Cancel),
		new(profile.Carrier),
		new(profile.Fact),
		new(profile.Hint),
		new(profile.KeyRule),
		new(profile.Lookup),
		new(profile.Matcher),
		new(profile.NotActed),
		new(profile.Own),
		new(profile.Profile),
		new(profile.Reference),
		new(profile.ShouldRetry),
		new(profile.Stored),
		new(profile.Token),
		new(profile.Source),
		new(profile.Window),
		new(reconcile.Asker),
		new(redis.Journal),
		new(referee.Referee),
		new(referee.Script),
		new(seal.Sealer),
		new(sign.Key),
		new(sign.Layout),
		new(sign.Message),
	}
}
