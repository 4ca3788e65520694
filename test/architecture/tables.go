package architecture

// This file is the table of rings in words that the checks read. Changing the architecture means changing it here.

// module is the path that our own imports begin with.
const module = "github.com/tollgate-dev/tollgate"

// ring is a place in the order of dependencies, which run inwards.
type ring string

const (
	kernel       ring = "kernel"          // shared by all of core
	model        ring = "model"           // types and pure rules of one hexagon
	useCase      ring = "use case"        // orchestrates over ports
	port         ring = "port"            // what the core asks of the world
	contract     ring = "contract suite"  // what every adapter of a port must pass
	driving      ring = "driving adapter" // calls the core
	driven       ring = "driven adapter"  // answers a port
	part         ring = "shared part"     // what adapters share of connections, files and waiting: knows no hexagon and no port
	bridge       ring = "bridge adapter"  // answers a port of one hexagon from the use cases of another
	protocol     ring = "plugin protocol" // what host and plugins both speak
	sdk          ring = "plugin SDK"      // what a plugin's author imports
	pluginBinary ring = "plugin binary"   // one process
	wiring       ring = "wiring"          // puts the parts together
	command      ring = "command"         // main packages
	spanning     ring = "spanning test"   // tests of more than one package
	example      ring = "example"         // programs that the documentation shows, of other modules only
	nowhere      ring = "no ring"         // a folder that the table does not know
)

// mayImport lists the rings that a ring may import. Which of them only within the family, withinFamily tells.
var mayImport = map[ring][]ring{
	kernel:       {kernel},
	model:        {kernel, model},
	useCase:      {kernel, model, useCase, port},
	port:         {kernel, model},
	contract:     {kernel, model, port, contract},
	driving:      {kernel, model, port, useCase, protocol, driving, part},
	part:         {kernel, part},
	driven:       {kernel, model, port, protocol, driven, part},
	bridge:       {kernel, model, port, useCase, bridge},
	protocol:     {kernel, model, port, protocol},
	sdk:          {kernel, model, port, contract, protocol, sdk},
	pluginBinary: {protocol, sdk},
	wiring:       {kernel, model, useCase, port, driving, driven, part, bridge, protocol, sdk, wiring},
	command:      {kernel, model, useCase, port, driving, driven, part, bridge, protocol, sdk, wiring},
	spanning: {
		kernel, model, useCase, port, contract, driving, part, driven, bridge, protocol, sdk, pluginBinary, wiring, command, spanning,
	},
}

// withinFamily lists, by the importing ring, the rings of which only the own family may be imported: a hexagon imports
// itself, an adapter its own tree.
var withinFamily = map[ring][]ring{
	model:   {model},
	useCase: {model, useCase},
	driving: {driving},
	driven:  {driven},
	bridge:  {bridge},
}

// kernelPackages are the folders of core that are no hexagon.
var kernelPackages = []string{"core/fault", "core/page", "core/requestid"}

// pureParts are folders of a hexagon that belong to its model: rules, not use cases.
var pureParts = []string{"core/auth/risk", "core/auth/trust", "core/ratelimit/ruleset"}

// drivingAdapters call the core; an adapter that is not listed here or in bridgeAdapters is driven.
var drivingAdapters = []string{
	"adapters/rest", "adapters/ratelimitapi", "adapters/debugapi", "adapters/statsd", "adapters/loginhistory", "adapters/prometheus",
	"adapters/decisionlog", "adapters/eventlog",
}

// sharedParts are what several adapters need of connections, of files and of waiting.
var sharedParts = []string{"adapters/boundedfile", "adapters/filewatch", "adapters/internal", "adapters/lifecycle", "adapters/pause", "adapters/wholefile"}

// bridgeAdapters answer what one hexagon asks of another.
var bridgeAdapters = []string{"adapters/inprocess"}

// independentFolders are folders of one adapter tree that never import each other: databases, and the stores of the hexagons.
var independentFolders = []string{
	"adapters/relational/postgres", "adapters/relational/sqlite",
	"adapters/relational/authrecords", "adapters/relational/registryrecords", "adapters/relational/methodrecords",
}

// sdkPackages are what a plugin's author imports. The other folders of plugins are binaries when they are named
// after a port's capability, and the protocol otherwise.
var sdkPackages = []string{"plugins/sdk"}

// binaryPrefixes begin the names of plugin binaries.
var binaryPrefixes = []string{"plugins/otp-", "plugins/pkg-"}

// testBinaries are plugins that an adapter's tests build.
var testBinaries = []string{"adapters/pluginhost/internal/testplugin"}

// pureModules are the packages of other modules that the pure rings may import: no I/O, no clock, no global state.
var pureModules = []string{"github.com/mileusna/useragent", "golang.org/x/mod/semver", "golang.org/x/text/unicode/norm"}

// suiteModules are those that contract suites may import besides.
var suiteModules = []string{"pgregory.net/rapid"}

// impure are packages of the standard library, with all below them, that do I/O, keep time or roll dice.
var impure = []string{
	"crypto/rand", "crypto/tls", "database", "expvar", "flag", "io/fs", "io/ioutil", "log", "math/rand", "net", "os",
	"path/filepath", "plugin", "runtime", "syscall", "testing", "unsafe",
}

// pureBelowImpure are pure packages below an impure one.
var pureBelowImpure = []string{"net/mail", "net/netip", "net/url"}

// clockCalls are the functions of package time that read or wait for the clock.
var clockCalls = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// topFolders are the folders of the root, besides those whose names begin with a dot.
var topFolders = []string{"core", "ports", "adapters", "plugins", "wiring", "cmd", "test", "docs", "deploy"}

// maxCodeLines is the size of a file in lines that are neither blank nor comment.
const maxCodeLines = 400
