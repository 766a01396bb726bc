// epoll(7) and eventfd(2), which Swift's Glibc does not show.
#pragma once
#include <sys/epoll.h>
#include <sys/eventfd.h>
