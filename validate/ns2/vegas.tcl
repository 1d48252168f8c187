# One Vegas flow that keeps `alpha` packets queued, over one link: where FAST should settle. Prints the
# window every `step` seconds from `from` to `until`.
#   ns vegas.tcl rate=20Mb delay=60ms alpha=100
source [file join [file dirname [info script]] common.tcl]
array set param {rate 20Mb delay 60ms alpha 100 from 130 until 150 step 0.25}
arguments param

set ns [new Simulator]
lean_packets
Agent/TCP set packetSize_ 1000
Agent/TCP set window_ 10000
foreach key {v_alpha_ v_beta_ v_gamma_} { Agent/TCP/Vegas set $key $param(alpha) }
set a [$ns node]
set b [$ns node]
hop $a $b $param(rate) $param(delay) 10000
foreach {tcp sink} [bulk Vegas $a $b 0 0] break

proc sample {} {
    global ns tcp cwnd param
    lappend cwnd [format %.1f [$tcp set cwnd_]]
    $ns at [expr [$ns now] + $param(step)] sample
}
proc finish {} {
    global tcp sink cwnd
    puts "{[counters $tcp $sink],\"cwnd\":\[[join $cwnd ,]\]}"
    exit 0
}
$ns at $param(from) sample
$ns at $param(until) finish
$ns run
