package architecture

// This file is the table of rings that the checks use. A change of the architecture is a change of
// this file.

// module is the prefix of our own import paths.
const module = "github.com/tollgate-dev/tollgate"

// ring is a group of packages. Dependencies between rings point inwards.
type ring string

const (
	kernel   ring = "kernel"          // shared by all of core
	model    ring = "model"           // types and pure rules of one hexagon
	useCase  ring = "use case"        // orchestrates over ports
	managing ring = "shared use case" // what use cases of all hexagons have in common
	port     ring = "port"            // interfaces that the core calls
	contract ring = "contract suite"  // what every adapter of a port must pass
	driving  ring = "driving adapter" // calls the core
	driven   ring = "driven adapter"  // implements a port
	// shared by adapters: connections, files, waiting; imports no hexagon and no port
	part         ring = "shared part"
	bridge       ring = "bridge adapter"  // implements a port of one hexagon with the use cases of another
	protocol     ring = "plugin protocol" // shared by host and plugins
	sdk          ring = "plugin SDK"      // imported by authors of plugins
	pluginBinary ring = "plugin binary"   // one process
	wiring       ring = "wiring"          // connects the parts
	command      ring = "command"         // programs, each with its packages
	spanning     ring = "spanning test"   // tests of more than one package
	waiting      ring = "waiting test"    // how tests wait, for all packages that are for tests alone
	example      ring = "example"         // programs in the documentation; they import other modules only
	unknownRing  ring = "no ring"         // a folder that the table does not list
)

// mayImport lists the rings that a ring may import. withinFamily restricts some of them to the same
// family.
var mayImport = map[ring][]ring{
	kernel:       {kernel},
	model:        {kernel, model},
	useCase:      {kernel, model, useCase, managing, port},
	managing:     {kernel, port},
	port:         {kernel, model},
	contract:     {kernel, model, port, contract},
	driving:      {kernel, model, port, useCase, managing, protocol, driving, part},
	part:         {kernel, part},
	driven:       {kernel, model, port, protocol, driven, part},
	bridge:       {kernel, model, port, useCase, bridge},
	protocol:     {kernel, model, port, protocol},
	sdk:          {protocol, sdk},
	pluginBinary: {protocol, sdk},
	wiring:       {kernel, model, useCase, port, driving, driven, part, bridge, protocol, sdk, wiring},
	command:      {kernel, model, useCase, port, driving, driven, part, bridge, protocol, sdk, wiring, command},
	spanning: {
		kernel, model, useCase, managing, port, contract, driving, part, driven, bridge, protocol, sdk, pluginBinary, wiring,
		command, spanning,
	},
}

// withinFamily lists, by the importing ring, the rings that it may import only from its own family:
// a hexagon imports only itself, an adapter only its own tree.
var withinFamily = map[ring][]ring{
	model:   {model},
	useCase: {model, useCase},
	driving: {driving},
	driven:  {driven},
	bridge:  {bridge},
	command: {command},
}

// kernelPackages are the folders of core that belong to no hexagon.
var kernelPackages = []string{
	"core/audit", "core/each", "core/email", "core/fault", "core/fields", "core/fitness", "core/jsonvalue", "core/kinds", "core/moment", "core/page", "core/recent", "core/requestid", "core/scope", "core/toolserver",
	"core/trustlevel",
}

// sharedUseCases are the folders of core with use cases that know no hexagon.
var sharedUseCases = []string{"core/managing"}

// pureParts are folders of a hexagon that belong to its model: rules, not use cases.
var pureParts = []string{
	"core/auth/company", "core/auth/history", "core/auth/oauth", "core/auth/risk", "core/auth/trust", "core/ratelimit/explain", "core/ratelimit/ruleset",
	"core/registry/event", "core/registry/mirror", "core/registry/publisher", "core/registry/review",
	"core/registry/service", "core/registry/tools", "core/registry/view",
}

// useCaseFloor is what use cases share: each of them may import these. They import no use case, unless
// useCaseImports says so.
var useCaseFloor = []string{
	"core/managing",
	"core/auth/access", "core/auth/assessment", "core/auth/auditing", "core/auth/locking", "core/auth/notices",
	"core/registry/announce", "core/registry/change", "core/registry/history", "core/registry/permit",
	"core/registry/viewreader",
}

// useCaseImports lists which other use cases a use case may import. An entry is removed when what both
// need goes to a shared one or to the model.
var useCaseImports = map[string][]string{
	"core/auth/credentials": {"core/auth/people"},
	"core/auth/federating":  {"core/auth/people", "core/auth/signin", "core/auth/stepup"},
	"core/auth/joining":     {"core/auth/people", "core/auth/signin"},
	"core/auth/pairing":     {"core/auth/credentials", "core/auth/signin"},
	"core/auth/signin":      {"core/auth/devices", "core/auth/passkeys"},
	"core/auth/stepup":      {"core/auth/devices", "core/auth/passkeys"},

	"core/ratelimit/decide":     {"core/ratelimit/lease"},
	"core/ratelimit/simulate":   {"core/ratelimit/decide"},
	"core/ratelimit/statistics": {"core/ratelimit/decide"},

	"core/registry/declaring":    {"core/registry/delegating", "core/registry/notifying", "core/registry/reviewing"},
	"core/registry/mirroring":    {"core/registry/reviewing", "core/registry/transferring"},
	"core/registry/publishing":   {"core/registry/receiving", "core/registry/reviewing"},
	"core/registry/quarantining": {"core/registry/receiving"},
	"core/registry/receiving":    {"core/registry/reviewing"},
	"core/registry/requesting":   {"core/registry/publishing"},
	"core/registry/watching":     {"core/registry/receiving"},
}

// drivingAdapters call the core. An adapter that is neither listed here nor in bridgeAdapters is
// driven.
var drivingAdapters = []string{
	"adapters/rest", "adapters/ratelimitapi", "adapters/debugapi", "adapters/statsd", "adapters/loginhistory",
	"adapters/prometheus",
	"adapters/decideapi", "adapters/decisionlog", "adapters/eventlog", "adapters/traffic",
}

// waitingTests are the packages by which tests wait.
var waitingTests = []string{"test/await"}

// sharedParts are used by several adapters.
var sharedParts = []string{"adapters/internal", "adapters/lifecycle", "adapters/requestbody"}

// guides is the folder of the guides, which are files of the program. The folders below it are examples.
const guides = "docs"

// bridgeAdapters connect two hexagons.
var bridgeAdapters = []string{"adapters/inprocess"}

// independentFolders are folders of one adapter tree that never import each other: databases, and
// the stores of the hexagons.
var independentFolders = []string{
	"adapters/relational/postgres", "adapters/relational/sqlite",
	"adapters/relational/authrecords", "adapters/relational/registryrecords", "adapters/relational/methodrecords",
	"adapters/relational/kindrecords",
}

// sdkPackages are imported by authors of plugins, and sdkParts also by the host and by adapters.
// The other folders of plugins are binaries if their names begin with one of binaryPrefixes, and
// belong to the protocol otherwise.
var (
	sdkPackages = []string{"plugins/sdk"}
	sdkParts    = []string{"plugins/sdk/handshake", "plugins/sdk/proto", "plugins/sdk/publicdial"}
)

// withoutHexagon are folders of adapters that serve all hexagons and do not know any model.
var withoutHexagon = []string{
	"adapters/relational/database", "adapters/relational/postgres", "adapters/relational/sqlite",
}

// binaryPrefixes are the prefixes of the names of plugin binaries.
var binaryPrefixes = []string{"plugins/otp-", "plugins/pkg-"}

// pureModules are the packages of other modules that the pure rings may import: no I/O, no clock,
// no global state.
var pureModules = []string{
	"github.com/gowebpki/jcs", "github.com/mileusna/useragent", "golang.org/x/mod/semver", "golang.org/x/net/publicsuffix",
	"golang.org/x/text/unicode/norm",
}

// suiteModules are those that contract suites may import in addition.
var suiteModules = []string{"pgregory.net/rapid"}

// impure are packages of the standard library that use I/O, the clock or randomness, with all
// packages below them.
var impure = []string{
	"crypto/rand", "crypto/tls", "database", "expvar", "flag", "io/fs", "io/ioutil", "log", "math/rand", "net", "os",
	"path/filepath", "plugin", "runtime", "syscall", "testing", "unsafe",
}

// pureBelowImpure are the pure packages below impure ones.
var pureBelowImpure = []string{"net/mail", "net/netip", "net/url"}

// clockCalls are the functions of package time that read or wait for the clock.
var clockCalls = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// waitCalls are the functions of package time that wait for a fixed time.
var waitCalls = []string{"Sleep", "After", "Tick"}

// realWaits lists where code of tests waits for a fixed time outside of bubbles. A wait for
// something to happen is a call of test/await.
var realWaits = []realWait{
	{"test/await/await.go", 3, "it is how tests wait"},
	{"core/auth/notices/notices_test.go", 1, "is called in a bubble"},
	{"core/ratelimit/decide/mixed_test.go", 1, "is called in a bubble"},
	{"core/ratelimit/lease/slow_test.go", 1, "is called in a bubble"},
	{"adapters/inprocess/decisions_bench_test.go", 2, "a benchmark, no test: the pace of publications and calls"},
	{"plugins/otp-email/mailer_test.go", 1, "a mail server that sends slowly, so that it does not take the processor"},
	{"test/instance/delayer.go", 1, "a slow network"},
	{"test/instance/instance.go", 2, "the end of a wait for a process, also for programs that are no tests"},
	{"test/instance/postgres.go", 1, "the pace of asking a server, also for programs that are no tests"},
	{"test/instance/server.go", 1, "the pace of asking a server, also for programs that are no tests"},
	{"test/docs/shell_test.go", 1, "how long an interrupted command may take before it is killed"},
	{"test/outages/killed_test.go", 1, "the interval between kills that a long run sets"},
	{"test/compare/main.go", 1, "a program, no test: the pace of its calls"},
	{"test/compare/services.go", 1, "a program, no test: the pace of asking a server"},
	{"test/compare/statsd.go", 1, "a program, no test: the pace of asking a server"},
	{"test/load/caller.go", 2, "a program, no test: how long it measures"},
	{"test/load/decisions.go", 1, "a program, no test: the pace of asking a server"},
	{"test/load/memory.go", 1, "a program, no test: memory settles"},
}

// topFolders are the folders of the root, except those whose names begin with a dot.
var topFolders = []string{"core", "ports", "adapters", "plugins", "wiring", "cmd", "test", "docs", "deploy"}

// maxCodeLines is the maximum size of a file, in lines that are neither blank nor comments.
const maxCodeLines = 400

// The pages of the console have no rules: a handler there calls a use case and renders what that
// returns, in at most maxHandlerLines lines.
const (
	consoleFolder   = "adapters/rest/console/"
	maxHandlerLines = 20
)

// callerMakers are the functions of ports/authority that make callers, and the folders that may
// mention them: the authority, its fake for tests, operator commands, and the pages that check the
// grant to operate.
var callerMakers = map[string][]string{
	"NewPerson":    {"adapters/inprocess", "ports/authority/authoritytest"},
	"NewGranted":   {"adapters/inprocess"},
	"NewPublisher": {"adapters/inprocess", "ports/authority/authoritytest"},
	"Watcher":      {"core/registry/watching"},
	"Operator": {
		"adapters/inprocess", "cmd/tollgate/operator", "adapters/rest/console/operating", "adapters/rest/adminapi",
	},
}

// serverSavers are the files of core that save servers in a transaction of core/registry/change, or
// those of many servers at once, of a mirror or an import, with their events and records.
var serverSavers = []string{
	"core/registry/reviewing/takeover.go", "core/registry/reviewing/mirrored.go", "core/registry/mirroring/apply.go",
	"core/registry/transferring/store.go",
}

// tokenTakers are the files of core, outside of core/auth, with a token as text that is no access
// token.
var tokenTakers = []string{"core/registry/delegating/prove.go", "core/registry/delegating/workloads.go"}

// watchedWords are words that plain technical English hardly uses in comments and documents, and
// that this project once used in every second sentence.
var watchedWords = []string{
	"tells", "told", "stands", "asks", "beside", "behind", "nobody", "whoever", "none", "such", "knocks", "hears",
}

// maxWatched is how many of 10,000 words may be watched ones.
const maxWatched = 8.0

// maxPages is how many words documents may have that would otherwise grow with each measurement.
var maxPages = map[string]int{"docs/performance.md": 2500}

// The width of lines. A literal that is longer than maxBrokenLiteral need not be broken.
const (
	maxCodeColumns    = 120
	maxCommentColumns = 100
	maxBrokenLiteral  = 60
)

// termsOfTheField are names of packages that may be like others, since everybody who knows the field knows them.
var termsOfTheField = []string{"oauth"}

// budget is how large the tree may be. A limit is raised with a reason, and lowered after a fold. The
// last lines are those of tool lists: ADR 28; those of the authorization server were before them: ADR 27.
var budget = measures{lines: 153_600, wiringLines: 1_325, interfaces: 23, binds: 25, settings: 247, chain: 18}
