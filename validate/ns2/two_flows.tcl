# Two bulk flows that share a link of 8 Mbit/s; many runs, one for each pair of start times.
#   ns two_flows.tcl topology=cross queue=144 jitter=0.00125 starts="0.1 0.7"
# same   both flows n0 -> n2 -> n1
# cross  the papers': flow 1 n0 -> n2 -> n1, flow 2 n2 -> n1 -> n4; they share n2 -> n1
source [file join [file dirname [info script]] common.tcl]
array set param {variant Newreno topology same queue 144 window 10000 ssthresh 0 jitter 0 access 8Mb
    duration 20 seed 1 starts "0 0"}
arguments param

set ns [new Simulator]
$defaultRNG seed $param(seed)
lean_packets
Agent/TCP set window_ $param(window)
Agent/TCP set overhead_ $param(jitter)
foreach i {0 1 2 4} { set n($i) [$ns node] }
hop $n(0) $n(2) $param(access) 30ms $param(queue)
hop $n(2) $n(1) 8Mb 30ms $param(queue)
hop $n(1) $n(4) 8Mb 30ms $param(queue)
foreach {start1 start2} $param(starts) break
set one [bulk $param(variant) $n(0) $n(1) $start1 $param(ssthresh)]
switch $param(topology) {
    same { set two [bulk $param(variant) $n(0) $n(1) $start2 $param(ssthresh)] }
    cross { set two [bulk $param(variant) $n(2) $n(4) $start2 $param(ssthresh)] }
}
proc finish {} {
    global one two
    puts "\[{[eval counters $one]},{[eval counters $two]}\]"
    exit 0
}
$ns at $param(duration) finish
$ns run
