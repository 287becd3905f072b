! SPDX-License-Identifier: MIT
! The Fortran module under mpirun: every kind of call, and mistakes.
program module_test
    use, intrinsic :: iso_c_binding
    use mpi
    use laconic
    implicit none

    integer, parameter :: weights = 6 * 4, n = weights + 3
    character(len=*), parameter :: layout = &
        "weight 4 6" // new_line("a") // "bias 3"
    integer :: ierror, rank, workers, failures = 0

    call MPI_Init(ierror)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
    call MPI_Comm_size(MPI_COMM_WORLD, workers, ierror)
    call gradients_become_their_mean()
    call models_mix_with_updates()
    call half_of_the_processes_are_a_group()
    call mistakes_are_reported()
    if (failures > 0) call MPI_Abort(MPI_COMM_WORLD, 1, ierror)
    print "(a, i0, a)", "worker ", rank, " passed"
    call MPI_Finalize(ierror)

contains

    subroutine expect(condition, what)
        logical, intent(in) :: condition
        character(len=*), intent(in) :: what
        if (condition) return
        print "(a, i0, a, a)", "worker ", rank, ": not so: ", what
        failures = failures + 1
    end subroutine

    ! The mean of 0 to workers - 1.
    real function middle()
        middle = real(workers - 1) / 2
    end function

    subroutine gradients_become_their_mean()
        type(laconic_algorithm) :: mean
        real(c_float) :: x(n)
        real(c_double) :: y(n)
        integer :: i
        call mean%open(MPI_COMM_WORLD, "allreduce", layout)
        call expect(mean%family() == laconic_gradient, "gradient family")
        call expect(mean%rank() == rank, "rank")
        call expect(mean%workers() == workers, "workers")
        x = [(real(rank + i), i = 1, n)]
        call mean%reduce(x)
        call expect(all(x == [(middle() + real(i), i = 1, n)]), "mean")
        y = rank + 0.1d0
        call mean%reduce(y)
        call expect(all(abs(y - middle() - 0.1d0) < 1d-12), "mean of doubles")
        call expect(mean%bytes_sent() > 0, "bytes")
        ! Opened again without closing.
        call mean%open(MPI_COMM_WORLD, "powersgd:rank=2", layout)
        x = real(rank)
        call mean%reduce(x)
        call expect(all(abs(x - middle()) < 1e-5), "powersgd")
        call mean%close()
    end subroutine

    subroutine models_mix_with_updates()
        type(laconic_algorithm) :: gossip
        real(c_float) :: x(n), update(n), sum(n)
        real(c_double) :: y(n)
        integer :: i, round
        call gossip%open(MPI_COMM_WORLD, "choco:gamma=0.5", layout, &
            compressor="sign", topology="ring")
        call expect(gossip%family() == laconic_model, "model family")
        x = real(rank)
        update = [(real(i), i = 1, n)]
        call gossip%mix(x, update)
        do round = 1, 200
            call gossip%mix(x)
        end do
        sum = x - middle() - update
        call expect(all(abs(sum) < 1e-3), "mean and update")
        call gossip%open(MPI_COMM_WORLD, "dpsgd", layout, topology="complete")
        y = rank
        call gossip%mix(y, update)
        call expect(all(abs(y - middle() - update) < 1e-5), "doubles")
        call gossip%close()
    end subroutine

    subroutine half_of_the_processes_are_a_group()
        type(laconic_algorithm) :: mean
        integer :: half
        real(c_float) :: x(1)
        call MPI_Comm_split(MPI_COMM_WORLD, mod(rank, 2), rank, half, ierror)
        call mean%open(half, "allreduce", "x 1")
        x = real(rank)
        call mean%reduce(x)
        call expect(x(1) == real(mod(rank, 2) + 1), "mean of the group")
        call mean%close()
        call MPI_Comm_free(half, ierror)
    end subroutine

    subroutine mistakes_are_reported()
        type(laconic_algorithm) :: mean
        integer :: stat
        real(c_float) :: x(n)
        x = 0
        call mean%reduce(x, stat)
        call expect(stat == -1, "LAC_ERR_INVALID")
        call expect(laconic_message() == "laconic: the algorithm is not open", &
            "not open")
        call mean%open(MPI_COMM_WORLD, "choco", layout, stat=stat)
        call expect(stat == -1, "status of open")
        call expect(laconic_message() == "choco: a topology is needed", &
            "topology")
        call mean%open(MPI_COMM_WORLD, "allreduce", layout, stat=stat)
        call expect(stat == 0, "open after a failure")
        call mean%reduce(x(2:), stat)
        call expect(laconic_message() == "values: 26, the layout has 27", &
            "size")
        call mean%mix(x, stat=stat)
        call expect(stat == -1, "mix of gradients")
        call mean%reduce(x, stat)
        call expect(stat == 0, "reduce after failures")
        call mean%close()
        call mean%close()
    end subroutine
end program
